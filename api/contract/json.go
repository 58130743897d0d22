package contract

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"earshot/internal/problem"
)

// checkJSON refuses what isn't one JSON object in UTF-8: the decoder would mend
// some of it silently.
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

// maxDepth is far from the 10,000 levels that decoders stop at: what is kept comes
// out again in answers and events, where it stands some levels deeper.
const maxDepth = 1024

// depth is how deep a valid document nests.
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

// hasLoneSurrogate finds in a valid document what the decoder would replace by U+FFFD
// in silence. A backslash that is itself escaped counts as a pair, so that \\ud800 is
// no escape.
func hasLoneSurrogate(document []byte) bool {
	low := -1 // where a high surrogate wants its low one
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
