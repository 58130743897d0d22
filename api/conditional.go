package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/api/contract"
	"earshot/internal/change"
	"earshot/internal/etag"
	"earshot/internal/problem"
)

const (
	etagHeader    = contract.ETagHeader
	ifMatchHeader = contract.IfMatchHeader
)

type ifMatchKey struct{}

// judgeIfMatch validates the If-Match header of an operation that takes one. It returns a context
// with the entity tags.
func (o operation) judgeIfMatch(ctx context.Context, bad *problem.Fields, h http.Header) context.Context {
	if !o.Conditional || len(h.Values(ifMatchHeader)) == 0 {
		return ctx
	}
	tags := etag.Read(h, ifMatchHeader)
	if tags == nil {
		bad.Add(ifMatchHeader, "format", "must be * or a list of entity tags, each in double quotes")
		return ctx
	}
	return context.WithValue(ctx, ifMatchKey{}, tags)
}

// matching makes a change conditional on the request's If-Match, if it has one. The change then
// fails unless the resource has one of the tags. The function answer returns the body of the
// resource's GET.
func matching[Out, Answer any](ctx context.Context, answer func(found Out) Answer) context.Context {
	tags, _ := ctx.Value(ifMatchKey{}).([]string)
	if tags == nil {
		return ctx
	}
	return change.OnlyIf(ctx, func(found Out) error {
		var body bytes.Buffer
		if err := json.NewEncoder(&body).Encode(answer(found)); err != nil { // the same encoding as in the generated code
			return errors.Wrap(err, "encode the resource")
		}
		if tags[0] != etag.Any && !slices.Contains(tags, etag.Of(body.Bytes())) {
			return problem.New(problem.PreconditionFailed, "The resource isn't any more what If-Match says; read it again.")
		}
		return nil
	})
}

// tag adds an ETag to the answers that have one in the contract. It answers 304 if the client
// already has the current version.
func (s *server) tag(c *gin.Context) {
	if !s.operation(c).Tagged {
		return
	}
	w := &heldWriter{ResponseWriter: c.Writer, status: http.StatusOK}
	c.Writer = w
	defer func() { c.Writer = w.ResponseWriter }() // the answer to a panic goes directly to the client
	c.Next()
	c.Writer = w.ResponseWriter
	if w.status < http.StatusMultipleChoices {
		tag := etag.Of(w.body.Bytes())
		c.Header(etagHeader, tag)
		if reads(c.Request.Method) && etag.Has(c.Request.Header, tag) {
			c.Writer.Header().Del("Content-Type")
			c.Writer.WriteHeader(http.StatusNotModified)
			c.Writer.WriteHeaderNow()
			return
		}
	}
	c.Writer.WriteHeader(w.status)
	_, _ = c.Writer.Write(w.body.Bytes()) // the client may have left
}

func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }
