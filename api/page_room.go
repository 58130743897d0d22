package api

import "github.com/gin-gonic/gin"

// hold has the answer keep the room that its rows take until it was written; that of
// a tool's operation, until the answer was written that it becomes part of.
func (s *server) hold(c *gin.Context) {
	ctx, over := s.feedback.Answering(c.Request.Context())
	if call := callOf(c); call != nil {
		defer call.keep(over)
	} else {
		defer over()
	}
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}
