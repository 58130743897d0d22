package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/internal/memory"
	"earshot/internal/page"
)

const (
	// bodyTimeout is how long a large body waits for memory before any of it is read: some
	// hundred times what the request of another one takes that sends and reads.
	bodyTimeout = 5 * time.Second
	// unreadTimeout is how long the large answer to a change that finds no memory may take
	// to be read.
	unreadTimeout = 5 * time.Second
	// maxMessage is the largest message of a surface, which has a body in it.
	maxMessage = 3 << 20
	// A body of more is decoded while few others are.
	largeBody = 64 << 10
)

const answerMemoryKey = "answerMemory"

// reserveMemory has the request keep the memory for its body, and the answer that for
// its rows, until it was written.
func (s *server) reserveMemory(c *gin.Context) {
	most := int64(maxBody)
	if c.Request.ContentLength > most {
		most = 0 // it is refused and not read
	}
	release, ok := s.reserveBody(c, most, memory.BodyCost)
	if !ok {
		return
	}
	defer release()
	caller, _ := callerOf(c)
	reserved := s.answers.Reservation(caller.Organization.ID)
	if call := callOf(c); call != nil {
		defer call.keep(reserved.Release) // until the answer was written that it becomes part of
	} else {
		defer reserved.Release()
	}
	c.Set(answerMemoryKey, reserved)
	c.Writer = &boundedAnswer{ResponseWriter: c.Writer, server: s, context: c, memory: reserved}
	c.Next()
}

// largePage is the query of a list whose rows may be large.
func largePage(ctx context.Context, cursor *string, limit *int) page.Query {
	q := pageQuery(cursor, limit)
	q.Memory, _ = ctx.Value(answerMemoryKey).(*page.Reservation)
	return q
}

// reserveBody waits for memory for a body before any of it is read, and refuses the request
// where there is none for long. A body that doesn't say how long it is counts as the
// largest. What a surface asks for stands in the surface's own request.
func (s *server) reserveBody(c *gin.Context, most int64, cost int) (release func(), ok bool) {
	n := c.Request.ContentLength
	if n < 0 || n > most {
		n = most
	}
	if n <= memory.FreeBody || c.Request.Body == http.NoBody || callOf(c) != nil {
		return func() {}, true
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), bodyTimeout)
	defer cancel()
	caller, _ := callerOf(c)
	release = s.bodies.Acquire(ctx, caller.Organization.ID, int(n)*cost)
	if release == nil {
		s.refuse(c, errors.Wrap(ctx.Err(), "wait for other bodies"))
	}
	return release, release != nil
}

// decoding has fn decode a body of some size when it is its turn. Large ones come to many
// times their size then, but for milliseconds: more than a few at once is no faster.
func (s *server) decoding(ctx context.Context, size int, fn func()) error {
	if size > largeBody {
		select {
		case s.decoders <- struct{}{}:
			defer func() { <-s.decoders }()
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "wait for other bodies to be decoded")
		}
	}
	fn()
	return nil
}

// boundedAnswer reserves memory for an answer of an operation that is large and no page.
type boundedAnswer struct {
	gin.ResponseWriter
	server  *server
	context *gin.Context
	memory  *page.Reservation
}

// Unwrap lets the answer's writer be found.
func (a *boundedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write has the whole answer. A read that finds no memory for it is refused. A change has
// happened and can't be, so its client gets little time.
func (a *boundedAnswer) Write(b []byte) (int, error) {
	switch {
	case a.Written() || a.memory.Fits(len(b)):
	case a.context.Request.Method == http.MethodGet, a.context.Request.Method == http.MethodHead:
		a.Header().Del(etagHeader) // of what isn't sent
		a.server.answer(a.context, page.NoMemory())
		return len(b), nil
	default:
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(unreadTimeout)) // a tool's has none
	}
	return a.ResponseWriter.Write(b)
}
