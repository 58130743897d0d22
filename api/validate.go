package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/gin-gonic/gin"

	"earshot/internal/problem"
)

// validate checks a request's query, headers and body against the contract. It refuses the request
// with all failures. The generated code can decode a valid request, and the domain checks its
// meaning. Ids in the path are opaque, so they need no validation.
func (s *server) validate(c *gin.Context) {
	op := s.operation(c)
	var bad problem.Fields
	query := op.ValidateQuery(&bad, c.Request.URL.RawQuery)
	keyed := op.validateKey(&bad, c.Request.Header)
	c.Request = c.Request.WithContext(op.validateIfMatch(&bad, c.Request))
	var raw []byte
	if op.Body != nil {
		var err error
		if raw, err = op.readBody(c); err != nil {
			s.refuse(c, err)
			return
		}
		var body []byte
		var readOnly map[string]json.RawMessage
		if raw != nil {
			err = s.decoding(c.Request.Context(), len(raw), func() { body, readOnly = op.ValidateBody(&bad, raw) })
		}
		if err != nil {
			s.refuse(c, err)
			return
		}
		if op.Alone != "" {
			body = op.setApart(c, &bad, body)
		}
		c.Request = c.Request.WithContext(op.withReadOnly(c.Request.Context(), readOnly))
		c.Request.Body = io.NopCloser(bytes.NewReader(body))
	}
	if keyed {
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), keyKey{}, newKey(c, raw)))
	}
	c.Request.URL.RawQuery = query
	if err := bad.Err(); err != nil {
		s.refuse(c, err)
	}
}
