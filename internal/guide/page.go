package guide

import (
	"bytes"
	"html/template"
	"path"
	"strings"

	"github.com/go-faster/errors"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// page is one file of the guide.
type page struct {
	Title, Path string
	// Headings are the headings of the second level, for the table of contents.
	Headings []heading
	body     template.HTML
}

type heading struct{ Title, ID string }

// markdown passes no HTML through, because the text has none.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// parsePage turns a file into a page, and into the sections for the search.
func parsePage(name string, source []byte) (page, []section, error) {
	p := page{Path: path.Join(Root, name)}
	doc := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	if h, ok := doc.FirstChild().(*ast.Heading); !ok || h.Level != 1 {
		return p, nil, errors.New("a page begins with its title")
	}
	var sections []section
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			title, id := plain(h, source), headingID(h)
			if h.Level == 1 {
				p.Title = title
			}
			if h.Level == 2 {
				p.Headings = append(p.Headings, heading{title, id})
			}
			sections = append(sections, newSection(p.Title, title, p.Path+"#"+id, ""))
			continue
		}
		last := &sections[len(sections)-1]
		last.add(plain(n, source))
	}
	relink(doc)
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, source, doc); err != nil {
		return p, nil, errors.Wrap(err, "render")
	}
	p.body = template.HTML(body.String()) //nolint:gosec // our own text, which the renderer has escaped
	return p, sections, nil
}

func headingID(h *ast.Heading) string {
	id, _ := h.AttributeString("id")
	raw, _ := id.([]byte)
	return string(raw)
}

// relink makes the links of a page lead to pages.
func relink(doc ast.Node) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			link.Destination = []byte(served(string(link.Destination)))
		}
		return ast.WalkContinue, nil
	})
}

// plain returns the text of a node without its markup. Spaces separate the words of different
// blocks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch t := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(t.Segment.Value(source))
				if t.SoftLineBreak() || t.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock:
			if entering {
				b.Write(t.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
