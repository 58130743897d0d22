// Package guide renders the guide to the API (docs/api) as web pages, and searches it. The pages
// need no script. The package is independent of HTTP: the api package serves its results.
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

// Paths that aren't pages of text.
const (
	Reference = Root + "/reference"
	Search    = Root + "/search"
	Style     = Root + "/guide.css"
)

// order is the order of the table of contents. The first page is also served at Root.
var order = []string{
	"getting-started", "sdks", "authentication", "errors", "pagination", "idempotency", "rate-limits",
	"webhooks", "verifying-webhooks", "privacy", "versioning", "changelog",
}

// Stylesheet is the style of all pages.
//
//go:embed style.css
var Stylesheet []byte

//go:embed page.html
var pageHTML string

var layout = template.Must(template.New("page").Parse(pageHTML))

// Operation is an operation of the contract. The search finds it beside the guide's sections.
type Operation struct {
	ID, Summary, Text string
}

// Guide has all pages and the sections for the search.
type Guide struct {
	pages    []page
	sections []section
}

// New reads the guide. The search also finds the operations.
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

// Find returns the page with the results of a search.
func (g *Guide) Find(query string) ([]byte, error) {
	query = shortened(query)
	return g.render(view{Title: "Search", At: Search, Query: query, Searched: true, Results: g.search(query)})
}

// view is the data for the layout.
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

// served turns a link to a file into a link to its page. The source links to files, for example
// errors.md#err_conflict, because viewers of the repository follow such links.
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
