// Package guide makes web pages of the guide to the API (docs/api), and finds things in
// them. Its pages need no script. It knows nothing of HTTP: the edge serves what it
// returns.
package guide

import (
	"bytes"
	_ "embed"
	"html/template"
	"path"
	"strings"

	"github.com/go-faster/errors"

	apidocs "earshot/docs/api"
)

// Root is the path of the first page; the others are below it.
const Root = "/v1/docs"

// Paths of what is not a page of text.
const (
	Reference = Root + "/reference"
	Search    = Root + "/search"
	Style     = Root + "/guide.css"
)

// order is that of the table of contents. The first is the page at Root.
var order = []string{
	"getting-started", "sdks", "authentication", "errors", "pagination", "idempotency", "rate-limits",
	"webhooks", "verifying-webhooks", "privacy", "versioning", "changelog",
}

// Stylesheet is what all pages look like.
//
//go:embed style.css
var Stylesheet []byte

//go:embed page.html
var pageHTML string

var layout = template.Must(template.New("page").Parse(pageHTML))

// Operation is one of the contract, to be found beside the guide's sections.
type Operation struct {
	ID, Summary, Text string
}

// Guide is all pages, ready to be served.
type Guide struct {
	pages    []page
	sections []section
}

// New reads the guide. The operations are what a search finds besides.
func New(operations []Operation) (*Guide, error) {
	g := &Guide{}
	for _, name := range order {
		source, err := apidocs.Pages.ReadFile(name + ".md")
		if err != nil {
			return nil, errors.Wrap(err, "read the guide")
		}
		p, sections, err := parsePage(name, source)
		if err != nil {
			return nil, errors.Wrap(err, name)
		}
		g.pages = append(g.pages, p)
		g.sections = append(g.sections, sections...)
	}
	for _, o := range operations {
		g.sections = append(g.sections, newSection("Reference", o.Summary, Reference+"#/operations/"+o.ID, o.Text))
	}
	return g, nil
}

// Pages returns each page of text by its path.
func (g *Guide) Pages() (map[string][]byte, error) {
	made := map[string][]byte{}
	for i, p := range g.pages {
		html, err := g.render(view{Title: p.Title, At: p.Path, Body: p.body})
		if err != nil {
			return nil, err
		}
		made[p.Path] = html
		if i == 0 {
			made[Root] = html
		}
	}
	return made, nil
}

// Find returns the page of what a search finds.
func (g *Guide) Find(query string) ([]byte, error) {
	query = shortened(query)
	return g.render(view{Title: "Search", At: Search, Query: query, Searched: true, Results: g.search(query)})
}

// view is what the layout shows.
type view struct {
	Title, At string
	Pages     []page
	Body      template.HTML
	Searched  bool
	Query     string
	Results   []result
}

func (g *Guide) render(v view) ([]byte, error) {
	v.Pages = g.pages
	var out bytes.Buffer
	if err := layout.Execute(&out, v); err != nil {
		return nil, errors.Wrap(err, "render the guide")
	}
	return out.Bytes(), nil
}

// served turns a link between files into one between pages: errors.md#err_conflict is
// what the repository's viewers follow.
func served(link string) string {
	file, fragment, _ := strings.Cut(link, "#")
	name, ok := strings.CutSuffix(file, ".md")
	if !ok || strings.Contains(name, "/") {
		return link
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	return path.Join(Root, name) + fragment
}
