package api

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/api/contract"
	"earshot/internal/etag"
	"earshot/internal/problem"
)

const (
	etagHeader    = contract.ETagHeader
	ifMatchHeader = contract.IfMatchHeader
)

type ifMatchKey struct{}

// validateIfMatch validates the If-Match header of a write and returns a context with the entity tags.
// It refuses the header of a write that takes none. Otherwise, the client would believe that its
// condition holds.
func (o operation) validateIfMatch(bad *problem.Fields, r *http.Request) context.Context {
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

// check compares the sent members with the body of the resource's GET.
func (r *readOnly) check(body []byte) error {
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

// sameJSON reports whether a sent value is the current one, in whichever spelling. It does not decode a
// text that is far too long to be the current value, because a decoded text takes up to thirty times its
// size.
func sameJSON(sent, current json.RawMessage) bool {
	const longest, space = 20, 64 // escapes and white space make no value longer
	if len(sent) > longest*len(current)+space {
		return false
	}
	var values [2]any
	for i, text := range []json.RawMessage{sent, current} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&values[i]) != nil {
			return false
		}
		values[i] = plainValue(values[i])
	}
	return reflect.DeepEqual(values[0], values[1])
}

// plainValue rewrites the numbers and times of a value, because libraries spell them in different ways.
func plainValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = plainValue(member)
		}
	case []any:
		for i, item := range v {
			v[i] = plainValue(item)
		}
	case json.Number:
		if f, err := v.Float64(); err == nil { // the precision of most libraries
			return f
		}
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return at.UTC().Format(time.RFC3339Nano)
		}
	}
	return value
}

// matcher returns the check of the request's If-Match and read-only members, or nil if it has none. The
// check fails unless the resource has one of the tags and the values of the members. The function answer
// returns the body of the resource's GET.
func matcher[Out, Body any](ctx context.Context, answer func(found Out) Body) func(found Out) error {
	tags, _ := ctx.Value(ifMatchKey{}).([]string)
	fixed, _ := ctx.Value(readOnlyKey{}).(*readOnly)
	if tags == nil && fixed == nil {
		return nil
	}
	return func(found Out) error {
		body, err := encoded(answer(found))
		if err != nil {
			return err
		}
		if tags != nil && tags[0] != etag.Any && !slices.Contains(tags, etag.Of(body)) {
			return problem.New(problem.PreconditionFailed, "The resource isn't any more what If-Match says; read it again.")
		}
		if fixed != nil {
			return fixed.check(body)
		}
		return nil
	}
}

// setETag adds an ETag to the answers that have one in the contract. It answers 304 if the client
// already has the current version.
func (s *server) setETag(c *gin.Context) {
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
