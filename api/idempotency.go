package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net/http"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"earshot/api/contract"
	"earshot/internal/change"
	"earshot/internal/problem"
)

const (
	idempotencyKeyHeader = contract.IdempotencyKeyHeader
	replayedHeader       = "Idempotent-Replayed"
	// maxIdempotencyKey is in characters.
	maxIdempotencyKey = 255
	// keyKey is where judge leaves the key for once.
	keyKey = "idempotency key"
)

// judgeKey judges the key of an operation that takes one, and reports whether there is one.
// Elsewhere the header says nothing.
func (o operation) judgeKey(bad *problem.Fields, h http.Header) (given bool) {
	all := h.Values(idempotencyKeyHeader)
	switch {
	case !o.Keyed || len(all) == 0:
		return false
	case len(all) > 1:
		bad.Add(idempotencyKeyHeader, "type", "must be given once")
	case !utf8.ValidString(all[0]):
		bad.Add(idempotencyKeyHeader, "encoding", "must be UTF-8")
	default:
		bad.Text(idempotencyKeyHeader, all[0], 1, maxIdempotencyKey)
	}
	return true
}

// once has a request with an Idempotency-Key change something once. Its answer is kept in the
// transaction of the change, so nothing of it is written to the client before that is
// committed.
func (s *server) once(c *gin.Context) {
	key, given := c.Get(keyKey)
	if !given {
		return
	}
	ctx, once := change.WithIdempotencyKey(c.Request.Context(), key.(idempotencyKey).id, key.(idempotencyKey).fingerprint)
	defer once.Abandon()
	c.Request = c.Request.WithContext(ctx)
	w := &heldWriter{ResponseWriter: c.Writer, status: http.StatusOK}
	c.Writer = w
	defer func() { c.Writer = w.ResponseWriter }() // who answers a panic writes to the client
	c.Next()
	c.Writer = w.ResponseWriter
	if w.status < http.StatusMultipleChoices {
		ctx, cancel := context.WithTimeout(ctx, s.work)
		defer cancel()
		if err := once.Commit(ctx, change.Answer{Status: w.status, Body: w.body.Bytes()}); err != nil {
			s.refuse(c, err)
			return
		}
	}
	once.Abandon() // before a client that reads slowly: a refusal may have left a transaction open
	c.Writer.WriteHeader(w.status)
	_, _ = c.Writer.Write(w.body.Bytes()) // as with any answer, a client that left isn't told
}

// idempotencyKey is what a request with a key is known by.
type idempotencyKey struct{ id, fingerprint [sha256.Size]byte }

// newIdempotencyKey keeps the keys of an API key apart from those of others, and a key is for one
// method and path. What is asked for is the query and the body, byte for byte: who repeats a
// request sends what he sent.
func newIdempotencyKey(c *gin.Context, body []byte) idempotencyKey {
	caller, _ := callerOf(c)
	return idempotencyKey{
		id:          digest(caller.Key.ID.String(), c.Request.Method, c.Request.URL.Path, c.GetHeader(idempotencyKeyHeader)),
		fingerprint: digest(c.Request.URL.RawQuery, string(body)),
	}
}

// digest is a hash of texts in which none of them can pass for another.
func digest(texts ...string) (sum [sha256.Size]byte) {
	all := make([]byte, 0, len(texts)*sha256.Size)
	for _, text := range texts {
		one := sha256.Sum256([]byte(text))
		all = append(all, one[:]...)
	}
	return sha256.Sum256(all)
}

// replay answers as the first time.
func (s *server) replay(c *gin.Context, a change.Answer) {
	c.Header(replayedHeader, "true")
	c.Data(a.Status, "application/json", a.Body)
	c.Abort()
}

// answeredBy tells how the result of an operation that is made in a group is answered, where its
// request has an Idempotency-Key.
func answeredBy[Out any](ctx context.Context, visit func(out *Out, w http.ResponseWriter) error) {
	change.AnsweredBy(ctx, func(out *Out) (change.Answer, error) {
		w := &recorder{Answer: Answer{Status: http.StatusOK, Header: http.Header{}}}
		err := visit(out, w)
		return change.Answer{Status: w.Status, Body: w.Body}, err
	})
}

// heldWriter keeps an answer back.
type heldWriter struct {
	gin.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *heldWriter) WriteHeader(status int)               { w.status = status }
func (w *heldWriter) WriteHeaderNow()                      {}
func (w *heldWriter) Write(b []byte) (int, error)          { return w.body.Write(b) }
func (w *heldWriter) WriteString(text string) (int, error) { return w.body.WriteString(text) }
func (w *heldWriter) Flush()                               {}
func (w *heldWriter) Status() int                          { return w.status }
func (w *heldWriter) Size() int                            { return w.body.Len() }
func (w *heldWriter) Written() bool                        { return w.body.Len() > 0 }
func (w *heldWriter) Unwrap() http.ResponseWriter          { return w.ResponseWriter }
