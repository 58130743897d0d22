package contract

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"earshot/internal/problem"
)

// checkJSON accepts only a single JSON object in UTF-8. The decoder would silently repair some
// invalid bodies.
func checkJSON(bad *problem.Fields, body []byte) bool {
	before := len(*bad)
	switch trimmed := bytes.TrimLeft(body, " \t\r\n"); {
	case !json.Valid(body):
		bad.Add("", "json", "the body is not valid JSON")
	case !utf8.Valid(body):
		bad.Add("", "encoding", "the body is not valid UTF-8")
	case hasLoneSurrogate(body):
		bad.Add("", "encoding", `the body has half of a surrogate pair (\ud800 to \udfff) standing alone`)
	case trimmed[0] != '{':
		bad.Add("", "type", "the body must be an object")
	case depth(body) > maxDepth:
		bad.Add("", "maxDepth", "the body must nest at most %d levels deep", maxDepth)
	}
	return len(*bad) == before
}

// maxDepth is far below the 10,000 levels at which decoders stop. A stored document is nested some
// levels deeper in answers and events.
const maxDepth = 1024

// depth returns the nesting depth of a valid document.
func depth(document []byte) int {
	level, deepest, quoted := 0, 0, false
	for i := 0; i < len(document); i++ {
		switch c := document[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// hasLoneSurrogate reports whether a valid document contains half of a surrogate pair. The decoder
// would silently replace it by U+FFFD. An escaped backslash is read as one unit, so \\ud800 isn't
// an escape.
func hasLoneSurrogate(document []byte) bool {
	low := -1 // the place where the low half of a pair must begin
	for i := 0; i < len(document); {
		if document[i] != '\\' {
			i++
			continue
		}
		size, half := 2, byte(0)
		if document[i+1] == 'u' {
			size = 6
			if document[i+2]|0x20 == 'd' {
				half = document[i+3] | 0x20 // in lower case
			}
		}
		isLow := half >= 'c' && half <= 'f'
		if (low >= 0) != isLow || (isLow && low != i) {
			return true
		}
		low = -1
		if half == '8' || half == '9' || half == 'a' || half == 'b' {
			low = i + size
		}
		i += size
	}
	return low >= 0
}
