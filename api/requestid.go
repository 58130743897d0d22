package api

import (
	"regexp"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

const requestIDHeader = "X-Request-Id"

// saneRequestID matches the callers' ids that are safe in logs and answers.
var saneRequestID = regexp.MustCompile(`^[A-Za-z0-9._:/+=-]{1,128}$`)

// withRequestID sets the request's id, for the answer and the log.
func withRequestID(c *gin.Context) {
	id := c.GetHeader(requestIDHeader)
	if !saneRequestID.MatchString(id) {
		id = uuid.NewString()
	}
	c.Set(requestIDHeader, id)
	c.Header(requestIDHeader, id)
}

func requestID(c *gin.Context) string { return c.GetString(requestIDHeader) }
