package earshot

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	idempotencyHeader = "Idempotency-Key"
	longestKey        = 255
)

// request is the request of a method.
type request struct {
	method, path string // the path has {places} for ids
	ids          []string
	query        url.Values
	body         any
	wait         time.Duration // additional time that the service was asked to wait
	keyed        bool
	kind         kind
}

// filled returns the path with the ids. An empty id would make it the path of another operation. So
// would . or .., if a proxy resolves it.
func (r request) filled() (string, error) {
	var text strings.Builder
	rest := r.path
	for _, id := range r.ids {
		before, place, _ := strings.Cut(rest, "{")
		place, after, _ := strings.Cut(place, "}")
		if id == "" || id == "." || id == ".." {
			return "", fmt.Errorf("earshot: %q is no %s", id, place)
		}
		text.WriteString(before + url.PathEscape(id))
		rest = after
	}
	return text.String() + rest, nil
}

// attempt is one request of a call. All attempts of a call are equal.
type attempt struct {
	method, path, url string
	header            http.Header
	body              []byte
	timeout           time.Duration
	answered          *Answer
	kind              kind
}

func (c *core) prepare(r request, options []CallOption) (a attempt, maxRetries int, err error) {
	o := callOptions{timeout: c.timeout, maxRetries: c.maxRetries, set: http.Header{}}
	if r.keyed {
		o.set.Set(idempotencyHeader, newKey())
	}
	for _, option := range options {
		option(&o)
	}
	if err := checkHeaders(o.set); err != nil {
		return a, 0, err
	}
	o.set.Set("Accept", "application/json")
	o.set.Set("User-Agent", "earshot-go/"+Version)
	a = attempt{method: r.method, header: o.set, timeout: o.timeout + r.wait, answered: o.answered, kind: r.kind}
	if a.path, err = r.filled(); err != nil {
		return a, 0, err
	}
	a.url = c.base + a.path
	if len(r.query) > 0 {
		a.url += "?" + r.query.Encode()
	}
	if r.body != nil {
		if a.body, err = json.Marshal(r.body); err != nil {
			return a, 0, fmt.Errorf("earshot: encode the body: %w", err)
		}
		o.set.Set("Content-Type", "application/json")
	}
	return a, o.maxRetries, nil
}

// checkHeaders refuses headers that net/http would report as a failed connection, or the service as
// malformed. An empty condition would not be a condition.
func checkHeaders(h http.Header) error {
	for name := range h {
		value := h.Get(name)
		if value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return fmt.Errorf("earshot: the %s is empty, or has a character that isn't printable ASCII", name)
		}
	}
	if n := len(h.Get(idempotencyHeader)); n > longestKey {
		return fmt.Errorf("earshot: the %s has %d characters, and may have %d", idempotencyHeader, n, longestKey)
	}
	return nil
}

// newKey returns a random UUID.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// do sends a request until it gets a final answer, and returns the body of the answer.
//
// A call makes at most 1+maxRetries attempts. Within an attempt, net/http may repeat the request
// immediately. It does so if a connection that it has kept open was closed before the first byte of
// the answer. For a write it does so because of the Idempotency-Key. These repetitions don't count.
//
//   - They say nothing about the service.
//   - Each one uses up an idle connection, and a request on a new connection isn't repeated.
//   - The key makes them harmless.
//
// To avoid them, set DisableKeepAlives in the Transport of Options.HTTPClient.
func (c *core) do(ctx context.Context, r request, options []CallOption) ([]byte, error) {
	a, maxRetries, err := c.prepare(r, options)
	if err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		body, err := c.send(ctx, a)
		if err == nil {
			return body, nil
		}
		wait, again := c.backoff(n, err)
		if !again || n >= maxRetries {
			return nil, err
		}
		if err := c.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// send makes one attempt.
func (c *core) send(ctx context.Context, a attempt) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, a.method, a.url, bytes.NewReader(a.body))
	if err != nil {
		return nil, fmt.Errorf("earshot: request %s %s: %w", a.method, a.path, bare(err))
	}
	r.Header = a.header.Clone()
	c.authorize(r)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, a.noAnswer(ctx, limited, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if a.answered != nil {
		*a.answered = Answer{answer.StatusCode, answer.Header}
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, a.noAnswer(ctx, limited, err)
	}
	if answer.StatusCode/100 != 2 || !a.kind.of(body) {
		return nil, newError(answer, body)
	}
	return body, nil
}

// noAnswer distinguishes a cancellation by the caller from the end of an attempt.
func (a attempt) noAnswer(ctx, limited context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("earshot: %w", ctx.Err())
	}
	if limited.Err() != nil {
		return &ConnectionError{a.method + " " + a.path, errors.New("it didn't come in time"), true}
	}
	return &ConnectionError{a.method + " " + a.path, bare(err), false}
}

// bare removes the address from an error of net/http, because its query may contain personal data.
func bare(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

// join writes a list as a query parameter.
func join[T ~string](list []T) string {
	text := make([]string, len(list))
	for i, one := range list {
		text[i] = string(one)
	}
	return strings.Join(text, ",")
}
