// Package earshot is the Go SDK of Earshot, a backend for product feedback: boards, posts, votes,
// comments, contacts and signed webhooks behind a JSON API.
//
//	c, err := earshot.New(earshot.Options{APIKey: "esk_…"})
//	post, err := c.Posts.Create(ctx, boardID, earshot.CreatePostRequest{Title: "Dark mode"})
//
// Methods are named as the API's operations are. They repeat what a repetition can mend, with one
// Idempotency-Key for all requests of a call, so that a write takes effect once.
package earshot

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	defaultBaseURL    = "http://127.0.0.1:4280"
	defaultTimeout    = 30 * time.Second
	defaultMaxRetries = 4
)

// Options say how a client reaches the service. All of them may be left zero.
type Options struct {
	// APIKey begins with esk_; EARSHOT_API_KEY of the environment where it is empty.
	APIKey string
	// BaseURL is the service's address without /v1; EARSHOT_BASE_URL of the environment where it is
	// empty, and http://127.0.0.1:4280 where that is empty, too.
	BaseURL string
	// Timeout bounds each request of a call, 30 seconds where it is zero.
	Timeout time.Duration
	// MaxRetries is how often a call repeats its request, 4 times where it is nil.
	MaxRetries *int
	// HTTPClient sends the requests, http.DefaultClient where it is nil. It follows no redirects here.
	HTTPClient *http.Client
	// Sleep waits before a repetition, and Random gives numbers in [0, 1) that spread the waits.
	Sleep  func(context.Context, time.Duration) error
	Random func() float64
}

// New makes a client. It fails without an API key, and with a base URL that isn't one.
func New(o Options) (*Client, error) {
	key := cmp.Or(o.APIKey, os.Getenv("EARSHOT_API_KEY"))
	if key == "" {
		return nil, errors.New("earshot: there is no API key: set Options.APIKey or EARSHOT_API_KEY")
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("earshot: the API key has a character that no key has, such as a line's end")
	}
	base := strings.TrimRight(cmp.Or(o.BaseURL, os.Getenv("EARSHOT_BASE_URL"), defaultBaseURL), "/")
	if wrong := checkBase(base); wrong != "" {
		return nil, errors.New("earshot: the base URL " + wrong)
	}
	c := &core{
		base:       base,
		http:       *cmp.Or(o.HTTPClient, http.DefaultClient),
		timeout:    cmp.Or(o.Timeout, defaultTimeout),
		maxRetries: *cmp.Or(o.MaxRetries, Ptr(defaultMaxRetries)),
		// A function, because whoever prints a client must not print the key.
		authorize: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) },
		sleep:     o.Sleep,
		random:    o.Random,
	}
	// The key mustn't go to wherever a redirect leads, and no operation has one.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if c.sleep == nil {
		c.sleep = sleep
	}
	if c.random == nil {
		c.random = rand.Float64
	}
	return newClient(c), nil
}

// checkBase says what is wrong with a base URL, without what is in it, which may be a password.
func checkBase(base string) string {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return "is no URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "doesn't begin with http:// or https://"
	case u.Hostname() == "":
		return "has no host"
	case u.User != nil:
		return "has a user, who isn't sent: the API key is"
	case strings.ContainsAny(base, "?#"):
		return "has a query or a fragment, which a path can't follow"
	}
	return ""
}

// core is what all resources share.
type core struct {
	base       string
	http       http.Client
	timeout    time.Duration
	maxRetries int
	authorize  func(*http.Request)
	sleep      func(context.Context, time.Duration) error
	random     func() float64
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CallOption changes one call.
type CallOption func(*callOptions)

type callOptions struct {
	timeout    time.Duration
	maxRetries int
	set        http.Header
	answered   *Answer
}

// IdempotencyKey gives a write a key of your own, 1 to 255 printable characters of ASCII, that survives
// a restart of your program. Without it each call has a new one.
func IdempotencyKey(key string) CallOption {
	return func(o *callOptions) { o.set.Set(idempotencyHeader, key) }
}

// IfMatch makes a write only if the resource is still what its ETag stands for; otherwise the error is
// ErrPreconditionFailed.
func IfMatch(etag string) CallOption {
	return func(o *callOptions) { o.set.Set("If-Match", etag) }
}

// Timeout bounds each request of the call.
func Timeout(d time.Duration) CallOption { return func(o *callOptions) { o.timeout = d } }

// MaxRetries is how often the call repeats its request.
func MaxRetries(n int) CallOption { return func(o *callOptions) { o.maxRetries = n } }

// Answer is what an answer has beside its data, such as the ETag and X-Request-Id. The status tells
// what was made (201) from what was there (200).
type Answer struct {
	Status int
	Header http.Header
}

// WithAnswer stores what the answer has beside its data.
func WithAnswer(into *Answer) CallOption { return func(o *callOptions) { o.answered = into } }
