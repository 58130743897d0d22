package api

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
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

// judgeIfMatch validates the If-Match header of a write and returns a context with the entity tags.
// It refuses the header of a write that takes none. Otherwise, the client would believe that its
// condition holds.
func (o operation) judgeIfMatch(bad *problem.Fields, r *http.Request) context.Context {
	ctx := r.Context()
	if reads(r.Method) || len(r.Header.Values(ifMatchHeader)) == 0 {
		return ctx
	}
	if !o.Conditional {
		bad.Add(ifMatchHeader, "unknown", "is not taken by this operation, which changes no resource with an ETag; leave the header out")
		return ctx
	}
	tags := etag.Read(r.Header, ifMatchHeader)
	if tags == nil {
		bad.Add(ifMatchHeader, "format", "must be * or a list of entity tags, each in double quotes")
		return ctx
	}
	return context.WithValue(ctx, ifMatchKey{}, tags)
}

type readOnlyKey struct{}

// readOnly has members that a request may only send with their current values.
type readOnly struct {
	sent map[string]json.RawMessage
	ways map[string]string
}

// withReadOnly returns a context with the read-only members of a request, if it has any.
func (o operation) withReadOnly(ctx context.Context, sent map[string]json.RawMessage) context.Context {
	if len(sent) == 0 {
		return ctx
	}
	return context.WithValue(ctx, readOnlyKey{}, &readOnly{sent, o.ReadOnly})
}

// judge compares the sent members with the body of the resource's GET.
func (r *readOnly) judge(body []byte) error {
	var current struct{ Data map[string]json.RawMessage }
	if err := json.Unmarshal(body, &current); err != nil {
		return errors.Wrap(err, "decode the resource")
	}
	var bad problem.Fields
	for _, name := range slices.Sorted(maps.Keys(r.sent)) {
		if !sameJSON(r.sent[name], current.Data[name]) {
			bad.Add(name, "read_only", "has another value than the resource: %s", r.ways[name])
		}
	}
	return bad.Err()
}

// sameJSON reports whether two texts have the same value. Numbers are compared as they are written.
func sameJSON(a, b json.RawMessage) bool {
	var values [2]any
	for i, text := range []json.RawMessage{a, b} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// matching makes a change conditional on the request's If-Match and read-only members, if it has any.
// The change then fails unless the resource has one of the tags and the values of the members. The
// function answer returns the body of the resource's GET.
func matching[Out, Answer any](ctx context.Context, answer func(found Out) Answer) context.Context {
	tags, _ := ctx.Value(ifMatchKey{}).([]string)
	fixed, _ := ctx.Value(readOnlyKey{}).(*readOnly)
	if tags == nil && fixed == nil {
		return ctx
	}
	return change.OnlyIf(ctx, func(found Out) error {
		var body bytes.Buffer
		if err := json.NewEncoder(&body).Encode(answer(found)); err != nil { // the same encoding as in the generated code
			return errors.Wrap(err, "encode the resource")
		}
		if tags != nil && tags[0] != etag.Any && !slices.Contains(tags, etag.Of(body.Bytes())) {
			return problem.New(problem.PreconditionFailed, "The resource isn't any more what If-Match says; read it again.")
		}
		if fixed != nil {
			return fixed.judge(body.Bytes())
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
