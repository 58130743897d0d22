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

// request is what a method asks for.
type request struct {
	method, path string // the path has {places} for ids
	ids          []string
	query        url.Values
	body         any
	wait         time.Duration // how long the service may take longer than it needs, as it is asked to
	keyed        bool
	kind         kind
}

// filled is the path with the ids. An empty one would make it another operation's, and so would one
// that is a path's . or .. to whatever stands before the service.
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

// attempt is one request of a call; all of them are equal.
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

// checkHeaders refuses what net/http would tell as a connection that failed, or a service as malformed.
// A condition that is empty would be none.
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

// newKey is a UUID of random bits.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // which never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// do sends a request until there is an answer that counts, and returns its body.
//
// A call makes at most 1+maxRetries attempts. Beneath an attempt net/http repeats a request by itself,
// at once, if a connection that it had kept open turns out to be closed before a byte of the answer
// came; for a write it does so because of the Idempotency-Key. That is left as it is: it says
// nothing of the service, each such repetition uses up one of the idle connections, what goes over
// a new one isn't repeated, and the key makes it harmless. Who wants none of it sets
// DisableKeepAlives in the Transport of Options.HTTPClient.
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

// noAnswer tells the caller's own cancelling from the end of an attempt.
func (a attempt) noAnswer(ctx, limited context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("earshot: %w", ctx.Err())
	}
	if limited.Err() != nil {
		return &ConnectionError{a.method + " " + a.path, errors.New("it didn't come in time"), true}
	}
	return &ConnectionError{a.method + " " + a.path, bare(err), false}
}

// bare is an error of net/http without the address, whose query may tell of persons.
func bare(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

// join is how a query has a list.
func join[T ~string](list []T) string {
	text := make([]string, len(list))
	for i, one := range list {
		text[i] = string(one)
	}
	return strings.Join(text, ",")
}
