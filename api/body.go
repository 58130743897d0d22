package api

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/internal/problem"
)

// maxBody is the largest request body (docs/decisions.md, Errors).
const maxBody = 1 << 20

const bodyKey = "body"

// readBody takes the whole body in and refuses what isn't one JSON object in
// UTF-8, before anything is decoded: the decoder would mend some of it silently.
func (s *server) readBody(c *gin.Context) {
	op := s.operation(c)
	if op.body == nil {
		return
	}
	if t, _, err := mime.ParseMediaType(c.GetHeader("Content-Type")); c.GetHeader("Content-Type") != "" &&
		(err != nil || (t != "application/json" && !strings.HasSuffix(t, "+json"))) {
		s.refuse(c, problem.New(problem.UnsupportedMedia, "The body must be application/json."))
		return
	}
	var body []byte
	var err error = &http.MaxBytesError{Limit: maxBody}
	if c.Request.ContentLength <= maxBody { // else there is no need to wait for it
		body, err = io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		s.refuse(c, problem.New(problem.PayloadTooLarge, "The body has more than 1 MiB."))
		return
	case err != nil:
		s.refuseForm(c, problem.Invalid("", "json", "the body could not be read to its end"))
		return
	}
	exact, err := s.checkBody(op, body)
	if exact != nil {
		keepBody(c, exact)
	}
	if err != nil {
		s.refuseForm(c, err)
	}
}

// checkBody returns the body in the contract's spelling, and what is wrong with it.
// Without the first it is no body at all.
func (s *server) checkBody(op operation, body []byte) (exact []byte, err error) {
	defer s.decoding(len(body))()
	if err := checkJSON(body); err != nil {
		return nil, err
	}
	exact = op.members.exact(body)
	if op.lacks(body) || (bytes.Contains(body, []byte("null")) && op.refusesNull(body)) {
		return exact, op.failures(body).Err()
	}
	return exact, nil
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

// refuseForm is refuse for a body that can't be decoded as it is.
func (s *server) refuseForm(c *gin.Context, err error) {
	p, _ := problem.As(err)
	s.gather(c, p, true)
}

func checkJSON(body []byte) error {
	switch trimmed := bytes.TrimLeft(body, " \t\r\n"); {
	case !json.Valid(body):
		return problem.Invalid("", "json", "the body is not valid JSON")
	case !utf8.Valid(body):
		return problem.Invalid("", "encoding", "the body is not valid UTF-8")
	case hasLoneSurrogate(body):
		return problem.Invalid("", "encoding", `the body has half of a surrogate pair (\ud800 to \udfff) standing alone`)
	case trimmed[0] != '{':
		return problem.Invalid("", "type", "the body must be an object")
	case depth(body) > maxDepth:
		return problem.Invalid("", "maxDepth", "the body must nest at most %d levels deep", maxDepth)
	}
	return nil
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

// refuseBody answers a body that doesn't fit its Go type with everything that
// the contract finds wrong with it.
func (s *server) refuseBody(c *gin.Context, err error) {
	body, _ := c.Get(bodyKey)
	raw, _ := body.([]byte)
	op := s.operation(c)
	over := s.decoding(len(raw))
	bad := op.failures(raw)
	over()
	if len(bad) == 0 {
		// 1.0 and 1e3 are integers to JSON Schema and none to Go.
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			bad.Add(op.members.nameIn(wrong.Field), "type", "has the wrong type or notation")
		} else {
			bad.Add("", "json", "the body can't be decoded")
		}
	}
	s.refuseForm(c, bad.Err())
}

var parameterName = regexp.MustCompile(`parameter (\w+)`)

// refuseParameter answers a query or path parameter that doesn't fit its type.
func (s *server) refuseParameter(c *gin.Context, err error, _ int) {
	name := ""
	if m := parameterName.FindStringSubmatch(err.Error()); m != nil {
		name = m[1]
	}
	var noMoment *time.ParseError
	if errors.As(err, &noMoment) {
		s.refuse(c, notAMoment(name))
		return
	}
	s.refuse(c, problem.Invalid(name, "type", "has the wrong type or format; several values are separated by commas"))
}
