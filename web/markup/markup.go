// Package markup converts the texts of users to HTML with a closed list of elements.
package markup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"html"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"earshot/web/messages"
	"earshot/web/pagecache"
)

// elements are the only elements in the output. Pictures are not allowed, because they would report
// readers to third parties.
var elements = []string{
	"p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "h3", "h4", "h5", "a",
}

// sanitizer removes everything except these elements. It checks the output of both converters.
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

// markdown is CommonMark without HTML, so the text <button> stays a word. URLs become links.
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

// markdownHTML converts Markdown to HTML.
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

// adapt moves headings below those of the page and replaces each picture by a link.
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

// bodyRoom bounds the HTML of all texts of one page: twenty of the longest posts. A text beyond the
// bound shows only its beginning.
const bodyRoom = 1 << 20

// markdownWork bounds the Markdown of one page: the number of marks times the bytes of the text. In
// the worst case, the parser's time grows with this product, and the bound takes about 0.2 s.
// People write at most one mark in ten characters, so an article of 30 KB is below the bound. A
// text beyond it is shown as plain text.
const markdownWork = 100_000_000

// beginning is the number of characters that are shown of an overlong text.
const beginning = 1000

// MaxKept bounds the size of all kept texts: some thousand usual comments, or 40 of the longest.
const MaxKept = 4 << 20

// Converted keeps converted texts, so that a page which is rendered again converts only new texts.
// The key is a hash of the text, so an edited text is another one. It is safe for concurrent use.
type Converted struct {
	kept *pagecache.Expiring[converted]
}

// converted is the HTML of a text. It costs work from a page's markdownWork.
type converted struct {
	html string
	work int
}

// NewConverted makes an empty store of converted texts.
func NewConverted() *Converted {
	return &Converted{pagecache.NewExpiring(MaxKept, func(c converted) (size int, keep bool) { return len(c.html), len(c.html) <= MaxKept/16 })}
}

// keptFor is a time after which an unread text is of no use.
const keptFor = time.Hour

func hashed(document json.RawMessage, plain string) string {
	sum := sha256.New()
	_ = binary.Write(sum, binary.BigEndian, uint64(len(document))) // a hash takes everything
	sum.Write(document)
	_, _ = io.WriteString(sum, plain)
	return string(sum.Sum(nil))
}

// Bodies converts the texts of one page to HTML.
type Bodies struct {
	// Words are the messages of the page.
	Words      *messages.Words
	kept       *pagecache.Expiring[converted]
	left, work int
}

// ForPage makes the Bodies of a page.
func (c *Converted) ForPage(w *messages.Words) *Bodies {
	return &Bodies{w, c.kept, bodyRoom, markdownWork}
}

// HTML converts a body to HTML. It uses the document, or the text if the document shows nothing.
func (b *Bodies) HTML(document json.RawMessage, plain string) template.HTML {
	return template.HTML(b.safe(document, plain)) //nolint:gosec // the only way to tell the template that it is
}

// safe returns sanitized HTML, or the escaped beginning of an overlong text.
func (b *Bodies) safe(document json.RawMessage, plain string) string {
	if len(document)+len(plain) > b.left {
		return b.cut(plain)
	}
	key := hashed(document, plain)
	made, known := b.kept.Peek(key)
	if !known {
		if made.html = documentHTML(document); made.html == "" {
			made.work = marks(plain) * len(plain)
		}
	}
	// A kept text costs its work, too. So a page looks the same whether its texts are kept or not.
	if made.work > b.work {
		made, known = converted{html: sanitizer.Sanitize(typed(plain))}, true
	}
	if !known {
		if made.html == "" {
			made.html = markdownHTML(plain)
		}
		made.html = sanitizer.Sanitize(made.html)
		b.kept.Put(key, made, time.Now().Add(keptFor))
	}
	b.work -= made.work
	if len(made.html) > b.left {
		return b.cut(plain)
	}
	b.left -= len(made.html)
	return made.html
}

// marks counts the characters that a Markdown parser may read twice.
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

// typed returns a plain text as HTML with its paragraphs and lines.
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

// shortened cuts a text to the given number of characters.
func shortened(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + " …"
		}
	}
	return text
}
