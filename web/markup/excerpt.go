package markup

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// excerptLength fills two lines of a wide screen.
const excerptLength = 240

// Excerpt returns the beginning of a Markdown text in one line, without markup.
func Excerpt(source string) string {
	// Markup and link targets rarely make a text more than twice as long.
	raw := []byte(shortened(source, 2*excerptLength))
	var out strings.Builder
	_ = ast.Walk(markdown.Parser().Parse(text.NewReader(raw)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				out.Write(n.Segment.Value(raw))
				if n.SoftLineBreak() || n.HardLineBreak() {
					out.WriteByte(' ')
				}
			}
		case *ast.AutoLink:
			if entering {
				out.Write(n.Label(raw))
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				out.Write(n.Lines().Value(raw))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return shortened(strings.Join(strings.Fields(out.String()), " "), excerptLength)
}
