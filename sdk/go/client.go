// Package earshot is the Go SDK of Earshot, a backend for product feedback: boards, posts, votes,
// comments, contacts and signed webhooks behind a JSON API.
//
//	c, err := earshot.New(earshot.Options{APIKey: "esk_…"})
//	post, err := c.Posts.Create(ctx, boardID, earshot.CreatePostRequest{Title: "Dark mode"})
//
// Methods have the names of the API's operations. They retry requests that may succeed later. All
// requests of a call have one Idempotency-Key, so a write takes effect once.
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

// Options configure how a client reaches the service. All of them are optional.
type Options struct {
	// APIKey begins with esk_. The default is the environment variable EARSHOT_API_KEY.
	APIKey string
	// BaseURL is the service's address without /v1. The default is the environment variable
	// EARSHOT_BASE_URL, or http://127.0.0.1:4280 if that is empty too.
	BaseURL string
	// Timeout limits each request of a call. The default is 30 seconds.
	Timeout time.Duration
	// MaxRetries is how often a call may repeat its request. The default is 4.
	MaxRetries *int
	// HTTPClient sends the requests, without following redirects. The default is http.DefaultClient.
	HTTPClient *http.Client
	// Sleep waits before a retry. Random returns numbers in [0, 1) that spread the waits.
	Sleep  func(context.Context, time.Duration) error
	Random func() float64
}

// New makes a client. It returns an error if the API key is missing or the base URL is invalid.
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
		// A function, so that printing a client doesn't print the key.
		authorize: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) },
		sleep:     o.Sleep,
		random:    o.Random,
	}
	// A redirect must not get the key, and no operation redirects.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if c.sleep == nil {
		c.sleep = sleep
	}
	if c.random == nil {
		c.random = rand.Float64
	}
	return newClient(c), nil
}

// checkBase returns the error of a base URL. It doesn't quote the URL, which may contain a password.
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
		return "has a user name, which isn't sent: remove it"
	case strings.ContainsAny(base, "?#"):
		return "has a query or a fragment, which a path can't follow"
	}
	return ""
}

// core is shared by all resources.
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

// IdempotencyKey gives a write your own key of 1 to 255 printable ASCII characters. The key then
// survives a restart of your program. The default is a new key for each call.
func IdempotencyKey(key string) CallOption {
	return func(o *callOptions) { o.set.Set(idempotencyHeader, key) }
}

// IfMatch performs a write only if the resource still has this ETag. Otherwise the error is
// ErrPreconditionFailed.
func IfMatch(etag string) CallOption {
	return func(o *callOptions) { o.set.Set("If-Match", etag) }
}

// Timeout limits each request of the call.
func Timeout(d time.Duration) CallOption { return func(o *callOptions) { o.timeout = d } }

// MaxRetries is how often the call may repeat its request.
func MaxRetries(n int) CallOption { return func(o *callOptions) { o.maxRetries = n } }

// Answer is an answer without its data. Its headers include the ETag and X-Request-Id. Status 201
// means that the resource is new, and 200 that it existed.
type Answer struct {
	Status int
	Header http.Header
}

// WithAnswer stores the status and the headers of the answer.
func WithAnswer(into *Answer) CallOption { return func(o *callOptions) { o.answered = into } }
