package markup

import (
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// A document (body.json) is a tree of nodes as ProseMirror and editors based on it write them. It
// is stored unchecked and may contain anything. The conversion emits a closed list of elements. An
// unknown node is replaced by its children.

type node struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Content []node `json:"content"`
	Marks   []mark `json:"marks"`
	Attrs   attrs  `json:"attrs"`
}

type mark struct {
	Type  string `json:"type"`
	Attrs attrs  `json:"attrs"`
}

type attrs struct {
	Level any `json:"level"`
	Href  any `json:"href"`
}

// maxDepth is deeper than people nest quotes and lists. Deeper nodes are left out.
const maxDepth = 24

// blocks maps types of nodes to elements. Editors spell some types in two ways.
var blocks = map[string]string{
	"paragraph": "p", "blockquote": "blockquote",
	"bulletList": "ul", "bullet_list": "ul", "orderedList": "ol", "ordered_list": "ol",
}

// items are the types of nodes that become an li inside a list. Outside a list, an li would close
// an li of the page.
var items = map[string]bool{"listItem": true, "list_item": true}

// inline maps types of marks to elements.
var inline = map[string]string{
	"bold": "strong", "strong": "strong", "italic": "em", "em": "em", "strike": "del", "code": "code",
}

// documentHTML returns the document as HTML, or "" if it is invalid or has no visible text.
func documentHTML(document json.RawMessage) string {
	var root node
	if json.Unmarshal(document, &root) != nil || root.Type != "doc" {
		return ""
	}
	var w documentWriter
	w.all(root.Content, "", 0)
	if !w.shows {
		return ""
	}
	return w.out.String()
}

type documentWriter struct {
	out strings.Builder
	// shows is true if there is visible text.
	shows bool
}

func (w *documentWriter) all(nodes []node, in string, depth int) {
	if depth > maxDepth {
		return
	}
	for i := range nodes {
		w.node(&nodes[i], in, depth)
	}
}

func (w *documentWriter) node(n *node, in string, depth int) {
	if items[n.Type] && (in == "ul" || in == "ol") {
		w.element("li", n, depth)
		return
	}
	if element, ok := blocks[n.Type]; ok {
		w.element(element, n, depth)
		return
	}
	switch n.Type {
	case "text":
		w.text(n)
	case "heading":
		w.element(heading(n.Attrs.Level), n, depth)
	case "codeBlock", "code_block":
		w.out.WriteString("<pre>")
		w.element("code", n, depth)
		w.out.WriteString("</pre>")
	case "hardBreak", "hard_break":
		w.out.WriteString("<br>")
	case "horizontalRule", "horizontal_rule":
		w.out.WriteString("<hr>")
	default:
		w.all(n.Content, in, depth+1)
	}
}

func (w *documentWriter) element(name string, n *node, depth int) {
	w.out.WriteString("<" + name + ">")
	w.all(n.Content, name, depth+1)
	w.out.WriteString("</" + name + ">")
}

// heading returns the element of a heading. Headings of a text rank below those of the page.
func heading(level any) string {
	switch level {
	case 1.0:
		return "h3"
	case 2.0:
		return "h4"
	default:
		return "h5"
	}
}

// maxMarks is more than there are types of marks.
const maxMarks = 8

func (w *documentWriter) text(n *node) {
	if strings.TrimSpace(n.Text) != "" {
		w.shows = true
	}
	var closing []string
	for _, m := range n.Marks[:min(len(n.Marks), maxMarks)] {
		if element, ok := inline[m.Type]; ok {
			w.out.WriteString("<" + element + ">")
			closing = append(closing, "</"+element+">")
		}
		if href, ok := m.Attrs.Href.(string); ok && m.Type == "link" && mayLinkTo(href) {
			w.out.WriteString(`<a href="` + html.EscapeString(href) + `">`)
			closing = append(closing, "</a>")
		}
	}
	w.out.WriteString(html.EscapeString(n.Text))
	for i := len(closing) - 1; i >= 0; i-- {
		w.out.WriteString(closing[i])
	}
}

// linkSchemes are the URL schemes that a link may have.
var linkSchemes = []string{"http", "https", "mailto"}

func mayLinkTo(address string) bool {
	u, err := url.Parse(address)
	return err == nil && slices.Contains(linkSchemes, u.Scheme)
}
