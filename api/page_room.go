package api

import "github.com/gin-gonic/gin"

// hold has the answer keep the room that its rows take until it was written.
func (s *server) hold(c *gin.Context) {
	ctx, over := s.feedback.Answering(c.Request.Context())
	defer over()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}
