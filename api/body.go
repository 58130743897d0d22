package api

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/internal/problem"
)

// maxBody is the largest request body.
const maxBody = 1 << 20

// readBody reads the whole body. If the body is optional, it returns nil for an empty body of any
// type, and for the JSON value null, which some clients send. A chunked body has no length, so only
// its end shows that it is empty.
func (o operation) readBody(c *gin.Context) ([]byte, error) {
	if !o.Bodiless {
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
	if c.Request.ContentLength <= maxBody { // a longer body is refused before it is read
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

// closeAfterChunks closes the connection after a request with a chunked body. If the request also
// has a Content-Length, net/http reads the chunks and doesn't report the header. A proxy that uses
// the length would take the rest for another client's request (RFC 9112, section 6.1).
func closeAfterChunks(c *gin.Context) {
	if len(c.Request.TransferEncoding) > 0 {
		c.Header("Connection", "close")
	}
}
