package earshot

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

type answer struct {
	Cut     string
	Status  int
	Headers map[string]string
	Body    json.RawMessage
	Text    string
}

// service gives its answers in turn, and repeats the last one forever.
type service struct {
	answers []answer

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string

	waits []time.Duration
}

// came returns the requests so far, and their bodies.
func (s *service) came() (requests []*http.Request, bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests), slices.Clone(s.bodies)
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
	a := s.answers[min(len(s.requests), len(s.answers))-1]
	s.mu.Unlock()
	if a.Cut == "before" {
		panic(http.ErrAbortHandler)
	}
	text := []byte(a.Text)
	if a.Body != nil {
		text = a.Body
	}
	for name, value := range a.Headers {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(a.Status)
	if a.Cut == "inside" {
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(text)
}

// serve starts a service and returns a client for it. The client records its waits instead of waiting.
func serve(t *testing.T, change func(*Options), answers ...answer) (*service, *Client) {
	t.Helper()
	s := &service{answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	o := Options{APIKey: "esk_hush", BaseURL: server.URL, HTTPClient: server.Client()}
	o.Sleep = func(ctx context.Context, d time.Duration) error {
		s.waits = append(s.waits, d)
		return ctx.Err()
	}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// outcome is the result of a call, as the tables write it.
func outcome(err error) string {
	var e *Error
	var none *ConnectionError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return string(e.Code)
	case errors.As(err, &none):
		return "CONNECTION"
	}
	return err.Error()
}

// sameJSON checks that a decoded value is encoded as it was.
func sameJSON(t *testing.T, value any, text string) {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var was, is map[string]any
	if err := errors.Join(json.Unmarshal([]byte(text), &was), json.Unmarshal(encoded, &is)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(was, is) {
		t.Errorf("%s became %s", text, encoded)
	}
}
