package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/internal/feedback"
	"earshot/internal/memory"
)

const (
	// bodyTimeout is how long a large body waits for room before any of it is read: some
	// hundred times what the request of another one takes that sends and reads.
	bodyTimeout = 5 * time.Second
	// unreadTimeout is how long the large answer to a change that finds no room may take
	// to be read.
	unreadTimeout = 5 * time.Second
	// maxMessage is the largest message of a surface, which has a body in it.
	maxMessage = 3 << 20
	// A body of more is decoded while few others are.
	largeBody = 64 << 10
)

// hold has the request keep the memory for its body, and the answer that for its rows,
// until it was written.
func (s *server) hold(c *gin.Context) {
	most := int64(maxBody)
	if c.Request.ContentLength > most {
		most = 0 // it is refused and not read
	}
	leave, ok := s.holdBody(c, most)
	if !ok {
		return
	}
	defer leave()
	ctx, room := s.feedback.Answering(c.Request.Context())
	defer room.Leave()
	c.Request = c.Request.WithContext(ctx)
	c.Writer = &answer{ResponseWriter: c.Writer, server: s, context: c, room: room}
	c.Next()
}

// holdBody waits for room for a body before any of it is read, and refuses the request
// where there is none for long. A body that doesn't say how long it is counts as the
// largest. What a surface asks for stands in the surface's own request.
func (s *server) holdBody(c *gin.Context, most int64) (leave func(), ok bool) {
	n := c.Request.ContentLength
	if n < 0 || n > most {
		n = most
	}
	if n <= memory.FreeBody || c.Request.Body == http.NoBody || passageOf(c.Request.Context()) != nil {
		return func() {}, true
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), bodyTimeout)
	defer cancel()
	if err := s.bodies.Acquire(ctx, n*memory.BodyCost); err != nil {
		s.refuse(c, errors.Wrap(err, "wait for other bodies"))
		return nil, false
	}
	return func() { s.bodies.Release(n * memory.BodyCost) }, true
}

// decoding waits for its turn to decode a body of some size. Large ones come to many
// times their size then, but for milliseconds: more than a few at once is no faster.
func (s *server) decoding(size int) (over func()) {
	if size <= largeBody {
		return func() {}
	}
	s.decoders <- struct{}{}
	return func() { <-s.decoders }
}

// answer takes room for an answer of an operation that is large and no page.
type answer struct {
	gin.ResponseWriter
	server  *server
	context *gin.Context
	room    *feedback.Room
}

// Write has the whole answer. A read that finds no room for it is refused. A change has
// happened and can't be, so its client gets little time.
func (a *answer) Write(b []byte) (int, error) {
	switch {
	case a.Written() || a.room.Fits(len(b)):
	case a.context.Request.Method == http.MethodGet:
		a.server.answer(a.context, feedback.NoRoom())
		return len(b), nil
	default:
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(unreadTimeout)) // a tool's has none
	}
	return a.ResponseWriter.Write(b)
}
