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
	// bodyTimeout is the time that a large body may wait for memory before it is read. It is some
	// hundred times the duration of a request with a client that sends and reads without delay.
	bodyTimeout = 5 * time.Second
	// unreadTimeout is the time that the client has to read the large answer to a change, if there
	// is no memory for the answer.
	unreadTimeout = 5 * time.Second
	// maxMessage is the largest message of a surface. It contains a request body.
	maxMessage = 3 << 20
	// largeBody is the size above which only a few bodies are decoded at the same time.
	largeBody = 64 << 10
)

const answerMemoryKey = "answerMemory"

// reserveMemory reserves memory for the request's body and for the rows of its answer. It releases
// the memory once the answer is written.
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
		defer call.keep(reserved.Release) // until the surface's answer, which contains this one, is written
	} else {
		defer reserved.Release()
	}
	c.Set(answerMemoryKey, reserved)
	c.Writer = &boundedAnswer{ResponseWriter: c.Writer, server: s, context: c, memory: reserved}
	c.Next()
}

// largePage returns the query of a list whose rows may be large.
func largePage(ctx context.Context, cursor *string, limit *int) page.Query {
	q := pageQuery(cursor, limit)
	q.Memory, _ = ctx.Value(answerMemoryKey).(*page.Reservation)
	return q
}

// reserveBody waits for memory for a body before it is read. It refuses the request if there is
// none within bodyTimeout. A body of unknown length counts as the largest. A tool call needs no
// reservation here, because the surface's request has one.
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

// decoding runs fn, which decodes a body of the given size. A large body takes many times its size
// for some milliseconds. Only a few of them are decoded in parallel, because more would be no
// faster.
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

// boundedAnswer reserves memory for a large answer that isn't a page.
type boundedAnswer struct {
	gin.ResponseWriter
	server  *server
	context *gin.Context
	memory  *page.Reservation
}

// Unwrap returns the wrapped writer.
func (a *boundedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write gets the whole answer. If there is no memory for it, a read is refused. A change has
// already happened and can't be refused, so its client gets only unreadTimeout to read the answer.
func (a *boundedAnswer) Write(b []byte) (int, error) {
	switch {
	case a.Written() || a.memory.Fits(len(b)):
	case a.context.Request.Method == http.MethodGet, a.context.Request.Method == http.MethodHead:
		a.Header().Del(etagHeader) // it belongs to the answer that isn't sent
		a.server.answer(a.context, page.NoMemory())
		return len(b), nil
	default:
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(unreadTimeout)) // a tool call's writer has no deadline
	}
	return a.ResponseWriter.Write(b)
}
