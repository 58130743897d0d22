package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/api/contract"
	"earshot/internal/change"
	"earshot/internal/problem"
)

const (
	idempotencyKeyHeader = contract.IdempotencyKeyHeader
	replayedHeader       = "Idempotent-Replayed"
	// maxIdempotencyKey is in characters.
	maxIdempotencyKey = 255
)

// validateKey validates the key of an operation that takes one, and reports whether the request has
// one. Other operations ignore the header.
func (o operation) validateKey(bad *problem.Fields, h http.Header) (given bool) {
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

// keyKey is the context key of a request's idempotency key.
type keyKey struct{}

// newKey separates the keys of different API keys, methods and paths. The fingerprint covers the query
// and the body, byte for byte, because a client that retries sends the same bytes.
func newKey(c *gin.Context, body []byte) *change.Key {
	caller, _ := callerOf(c)
	return &change.Key{
		ID:          digest(caller.Key.ID.String(), c.Request.Method, c.Request.URL.Path, c.GetHeader(idempotencyKeyHeader)),
		Fingerprint: digest(c.Request.URL.RawQuery, string(body)),
	}
}

// digest hashes several texts. It hashes each text first, so that different lists of texts have
// different digests.
func digest(texts ...string) (sum [sha256.Size]byte) {
	all := make([]byte, 0, len(texts)*sha256.Size)
	for _, text := range texts {
		one := sha256.Sum256([]byte(text))
		all = append(all, one[:]...)
	}
	return sha256.Sum256(all)
}

// replay sends the stored answer of the first request.
func (s *server) replay(c *gin.Context, a change.Answer) {
	c.Header(replayedHeader, "true")
	c.Data(a.Status, "application/json", a.Body)
	c.Abort()
}

// request returns the idempotency key of a request, if it has one, with the answer to store. The
// operation answers with this status and body.
func request[R, Body any](ctx context.Context, status int, answer func(R) Body) change.Request[R] {
	return requestOf(ctx, func(out R) (int, any) { return status, answer(out) })
}

// requestOf is request for an operation with several successful statuses.
func requestOf[R any](ctx context.Context, answer func(R) (status int, body any)) (q change.Request[R]) {
	if q.Key, _ = ctx.Value(keyKey{}).(*change.Key); q.Key == nil {
		return q
	}
	q.Answer = func(out R) (change.Answer, error) {
		status, body := answer(out)
		text, err := encoded(body)
		return change.Answer{Status: status, Body: text}, err
	}
	return q
}

// conditional is request for an operation with preconditions. found returns the body of the
// resource's GET.
func conditional[R, Body, Found any](ctx context.Context, status int, answer func(R) Body, found func(R) Found) change.Request[R] {
	q := request(ctx, status, answer)
	q.Match = matcher(ctx, found)
	return q
}

// encoded encodes a body as the generated code does.
func encoded(body any) ([]byte, error) {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(body); err != nil {
		return nil, errors.Wrap(err, "encode the resource")
	}
	return text.Bytes(), nil
}

// heldWriter holds an answer back.
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
