package api

import (
	"regexp"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

const requestIDHeader = "X-Request-Id"

// A caller's id is kept where it is sane: it goes into logs and answers.
var saneRequestID = regexp.MustCompile(`^[A-Za-z0-9._:/+=-]{1,128}$`)

// withRequestID names the request, in the answer and for the log.
func withRequestID(c *gin.Context) {
	id := c.GetHeader(requestIDHeader)
	if !saneRequestID.MatchString(id) {
		id = uuid.NewString()
	}
	c.Set(requestIDHeader, id)
	c.Header(requestIDHeader, id)
}

func requestID(c *gin.Context) string { return c.GetString(requestIDHeader) }
