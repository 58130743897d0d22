package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-faster/errors"

	"earshot/internal/change"
	"earshot/internal/problem"
)

const (
	etagHeader        = "ETag"
	ifMatchHeader     = "If-Match"
	ifNoneMatchHeader = "If-None-Match"
)

// entityTag is the strong validator of an answer (RFC 9110, 8.8.3): 128 bits of the hash of its
// bytes, so that two different answers never have the same one.
func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

var (
	tagForm = regexp.MustCompile(`(?:W/)?"[!#-~\x80-\xff]*"`)
	// tagList is the form of If-Match and If-None-Match.
	tagList = regexp.MustCompile(`^\s*(?:,*\s*` + tagForm.String() + `(?:[\s,]*,[\s,]*` + tagForm.String() + `)*[\s,]*)$`)
)

// anyTag is an asterisk in place of a list.
const anyTag = "*"

// readTags returns the tags of a header, or nil where it isn't there or malformed.
func readTags(h http.Header, name string) []string {
	text := strings.TrimSpace(strings.Join(h.Values(name), ","))
	switch {
	case text == anyTag:
		return []string{anyTag}
	case tagList.MatchString(text):
		return tagForm.FindAllString(text, -1)
	default:
		return nil
	}
}

type ifMatchKey struct{}

// judgeIfMatch judges the If-Match of an operation that takes one, and returns the context with it.
func (o operation) judgeIfMatch(ctx context.Context, bad *problem.Fields, h http.Header) context.Context {
	if !o.conditional || len(h.Values(ifMatchHeader)) == 0 {
		return ctx
	}
	tags := readTags(h, ifMatchHeader)
	if tags == nil {
		bad.Add(ifMatchHeader, "format", "must be * or a list of entity tags, each in double quotes")
		return ctx
	}
	return context.WithValue(ctx, ifMatchKey{}, tags)
}

// matching has a change be made only while the resource is as the request's If-Match says, if it
// has one. Answer is what its GET answers.
func matching[Out, Answer any](ctx context.Context, answer func(found Out) Answer) context.Context {
	tags, _ := ctx.Value(ifMatchKey{}).([]string)
	if tags == nil {
		return ctx
	}
	return change.OnlyIf(ctx, func(found Out) error {
		var body bytes.Buffer
		if err := json.NewEncoder(&body).Encode(answer(found)); err != nil { // as the generated code does
			return errors.Wrap(err, "encode the resource")
		}
		if tags[0] != anyTag && !slices.Contains(tags, entityTag(body.Bytes())) {
			return problem.New(problem.PreconditionFailed, "The resource isn't any more what If-Match says; read it again.")
		}
		return nil
	})
}

// tag gives the answers that have one by the contract their ETag, and answers 304 to who has
// already what would be sent.
func (s *server) tag(c *gin.Context) {
	if !s.operation(c).tagged {
		return
	}
	w := &heldWriter{ResponseWriter: c.Writer, status: http.StatusOK}
	c.Writer = w
	defer func() { c.Writer = w.ResponseWriter }() // who answers a panic writes to the client
	c.Next()
	c.Writer = w.ResponseWriter
	if w.status < http.StatusMultipleChoices {
		tag := entityTag(w.body.Bytes())
		c.Header(etagHeader, tag)
		if reads(c.Request.Method) && has(c.Request.Header, tag) {
			c.Writer.Header().Del("Content-Type")
			c.Writer.WriteHeader(http.StatusNotModified)
			c.Writer.WriteHeaderNow()
			return
		}
	}
	c.Writer.WriteHeader(w.status)
	_, _ = c.Writer.Write(w.body.Bytes()) // as with any answer, a client that left isn't told
}

func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// has reports whether an If-None-Match names the tag, also as a weak one: a proxy that compresses
// an answer makes its tag weak. One that is malformed is as good as none.
func has(h http.Header, tag string) bool {
	return slices.ContainsFunc(readTags(h, ifNoneMatchHeader), func(have string) bool {
		return have == anyTag || strings.TrimPrefix(have, "W/") == tag
	})
}
