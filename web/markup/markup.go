// Package markup makes HTML of what people write, and lets nothing else through.
package markup

import (
	"bytes"
	"encoding/json"
	"html"
	"html/template"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"earshot/web/messages"
)

// elements are all that a text may become. It has no pictures: they would come from elsewhere,
// and tell there who reads.
var elements = []string{
	"p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "h3", "h4", "h5", "a",
}

// sanitizer lets those elements through and nothing else, whatever the walkers before it wrote.
var sanitizer = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements(elements...)
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes(linkSchemes...)
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
}()

// markdown is CommonMark without HTML: people who write <button> mean the word. Addresses
// become links.
var markdown = goldmark.New(goldmark.WithParser(parser.NewParser(
	parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100), util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300), util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500), util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700), util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	),
	parser.WithInlineParsers(
		util.Prioritized(parser.NewCodeSpanParser(), 100), util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300), util.Prioritized(parser.NewEmphasisParser(), 500),
	),
	parser.WithParagraphTransformers(util.Prioritized(parser.LinkReferenceParagraphTransformer, 100)),
)), goldmark.WithExtensions(extension.Linkify, extension.Strikethrough))

// markdownHTML is a text in Markdown as HTML.
func markdownHTML(source string) string {
	raw := []byte(source)
	doc := markdown.Parser().Parse(text.NewReader(raw))
	if tooDeep(doc) {
		return typed(source)
	}
	adapt(doc)
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, raw, doc); err != nil {
		return typed(source)
	}
	return out.String()
}

// tooDeep reports whether a text nests deeper than maxDepth.
func tooDeep(doc ast.Node) bool {
	depth, deepest := 0, 0
	_ = ast.Walk(doc, func(_ ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		depth++
		if deepest = max(deepest, depth); deepest > 2*maxDepth { // a list and its item are two
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return deepest > 2*maxDepth
}

// adapt puts headings below those of the page, and a link in the place of each picture.
func adapt(doc ast.Node) {
	var pictures []*ast.Image
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			n.Level = min(n.Level+2, 5)
		case *ast.Image:
			pictures = append(pictures, n)
		}
		return ast.WalkContinue, nil
	})
	for _, picture := range pictures {
		link := ast.NewLink()
		link.Destination = picture.Destination
		for child := picture.FirstChild(); child != nil; child = picture.FirstChild() {
			link.AppendChild(link, child)
		}
		if !link.HasChildren() {
			link.AppendChild(link, ast.NewString(picture.Destination))
		}
		picture.Parent().ReplaceChild(picture.Parent(), picture, link)
	}
}

// bodyRoom is how much HTML the texts of one page may come to together: twenty of the longest
// posts. What is beyond shows its beginning only.
const bodyRoom = 1 << 20

// markdownWork is how many marks of Markdown times bytes of text are worked on for one page. The
// parser takes time with that product in the worst case, some 0.2 s for as much as this. People
// write a mark in ten characters at most, so an article of 30 KB is below it. A text that has no
// room is shown as it was typed.
const markdownWork = 100_000_000

// beginning is how many characters are shown of a text that is too long.
const beginning = 1000

// Bodies makes HTML of the texts of one page.
type Bodies struct {
	// Words are those of the page.
	Words      *messages.Words
	left, work int
}

// New begins a page.
func New(w *messages.Words) *Bodies { return &Bodies{w, bodyRoom, markdownWork} }

// HTML is a body as HTML: its document, or its text where it has none that can be shown.
func (b *Bodies) HTML(document json.RawMessage, plain string) template.HTML {
	return template.HTML(b.safe(document, plain)) //nolint:gosec // the only way to tell the template that it is
}

// safe is HTML that has passed the sanitizer, or the beginning of a text that was escaped.
func (b *Bodies) safe(document json.RawMessage, plain string) string {
	if len(document)+len(plain) > b.left {
		return b.cut(plain)
	}
	made := documentHTML(document)
	if made == "" {
		made = b.markdown(plain)
	}
	made = sanitizer.Sanitize(made)
	if len(made) > b.left {
		return b.cut(plain)
	}
	b.left -= len(made)
	return made
}

func (b *Bodies) markdown(text string) string {
	work := marks(text) * len(text)
	if work > b.work {
		return typed(text)
	}
	b.work -= work
	return markdownHTML(text)
}

// marks counts what a parser of Markdown looks twice at.
func marks(text string) (n int) {
	for i := range len(text) {
		switch text[i] {
		case '[', ']', '(', ')', '*', '_', '~', '`', '<', '>', '!', '-', '+', '#':
			n++
		case '.':
			if i > 0 && '0' <= text[i-1] && text[i-1] <= '9' {
				n++
			}
		}
	}
	return n
}

// typed is a text as it was typed, in its paragraphs and lines.
func typed(text string) string {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
			out.WriteString("<p>" + strings.ReplaceAll(html.EscapeString(paragraph), "\n", "<br>") + "</p>")
		}
	}
	return out.String()
}

func (b *Bodies) cut(plain string) string {
	return "<p><em>" + html.EscapeString(b.Words.Text("text.long")) + "</em></p><p>" + html.EscapeString(shortened(plain, beginning)) + "</p>"
}

// shortened is a text of so many characters at most.
func shortened(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + " …"
		}
	}
	return text
}
