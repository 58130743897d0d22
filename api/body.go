package api

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/internal/problem"
)

// maxBody is the largest request body (docs/decisions.md, Errors).
const maxBody = 1 << 20

// readBody takes the whole body in. It is nil where the operation may come without one, and does:
// with nothing, whatever is said of its type, or with null, as some clients write that. Only the
// end tells that a body in chunks is nothing.
func (o operation) readBody(c *gin.Context) ([]byte, error) {
	if !o.bodiless {
		return readBody(c)
	}
	body, err := readAll(c)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	if err := mustBeJSON(c); err != nil {
		return nil, err
	}
	if string(bytes.TrimSpace(body)) == "null" {
		return nil, nil
	}
	return body, nil
}

func readBody(c *gin.Context) ([]byte, error) {
	if err := mustBeJSON(c); err != nil {
		return nil, err
	}
	return readAll(c)
}

func mustBeJSON(c *gin.Context) error {
	told := c.GetHeader("Content-Type")
	if t, _, err := mime.ParseMediaType(told); told != "" && (err != nil || (t != "application/json" && !strings.HasSuffix(t, "+json"))) {
		return problem.New(problem.UnsupportedMedia, "The body must be application/json.")
	}
	return nil
}

func readAll(c *gin.Context) ([]byte, error) {
	var body []byte
	var err error = &http.MaxBytesError{Limit: maxBody}
	if c.Request.ContentLength <= maxBody { // else there is no need to wait for it
		body, err = io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, problem.New(problem.PayloadTooLarge, "The body has more than 1 MiB.")
	case err != nil:
		return nil, problem.Invalid("", "json", "the body could not be read to its end")
	}
	return body, nil
}

// closeAfterChunks lets no request follow a body in chunks on the same connection.
// Net/http takes the chunks where a Content-Length stands beside them, and doesn't
// tell; a proxy that went by the length would take what follows for another
// client's request (RFC 9112, section 6.1).
func closeAfterChunks(c *gin.Context) {
	if len(c.Request.TransferEncoding) > 0 {
		c.Header("Connection", "close")
	}
}

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
