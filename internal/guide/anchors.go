package guide

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// anchors names headings as GitHub does, so that a link within the repository leads to the same
// heading on the pages. The library's own names have no underscores.
type anchors map[string]bool

// Generate returns the name of a heading.
func (a anchors) Generate(title []byte, _ ast.NodeKind) []byte {
	name := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		default:
			return -1
		}
	}, lower(strings.TrimSpace(string(title))))
	unique := name
	for n := 1; a[unique]; n++ {
		unique = name + "-" + strconv.Itoa(n)
	}
	a[unique] = true
	return []byte(unique)
}

// Put records a name that the text sets itself.
func (a anchors) Put(name []byte) { a[string(name)] = true }
