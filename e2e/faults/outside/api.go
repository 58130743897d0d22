// Package outside plays the outside users of a service that is being killed, and checks that the
// service keeps each acknowledged change. Visitors use public boards in browsers without scripts. A
// person asks for an export and an erasure. A client keeps a copy of a list in step.
//
// It takes no code from the service: it knows pages by their forms, e-mails by their links, and the
// API by its paths.
package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-faster/errors"
)

const (
	// askTimeout bounds one request, because the service may be cut off.
	askTimeout = 10 * time.Second
	// againPause is the pause before a request is repeated.
	againPause = 100 * time.Millisecond
	// maxAnswer is larger than any answer that this package requests.
	maxAnswer = 16 << 20
)

// errAway means that there was no answer, or a temporary error. It is unknown whether the request
// took effect.
var errAway = errors.New("no answer")

// errRefused accompanies errAway if the service refused the request or did not get it.
var errRefused = errors.New("refused for now")

// insist repeats a function until it gets an answer. Errors other than errAway end it.
func insist(ctx context.Context, do func(ctx context.Context) error) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, askTimeout)
		err := do(bounded)
		cancel()
		if !errors.Is(err, errAway) {
			return err
		}
		if err := pause(ctx, againPause); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request once. No answer and a 5xx status are errAway.
func ask(client *http.Client, q *http.Request) (answer, error) {
	got, err := client.Do(q)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return answer{}, errors.Join(errAway, errRefused, err)
	}
	if err != nil {
		return answer{}, errors.Join(errAway, err)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(got.Body, maxAnswer))
	if err != nil {
		return answer{}, errors.Join(errAway, err)
	}
	if got.StatusCode >= http.StatusInternalServerError {
		return answer{}, errors.Join(errAway, errRefused, errors.New(got.Status))
	}
	return answer{got.StatusCode, got.Header, body}, nil
}

// newClient returns a client that opens a connection for each request and follows no redirects.
func newClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// API is a client with an API key.
type API struct {
	url, key string
	client   *http.Client
}

// NewAPI returns a client for the service at the URL.
func NewAPI(url, key string) *API { return &API{url, key, newClient()} }

// send repeats a request until it is answered, and decodes the answer. A status other than 2xx is
// an error unless it is in expected; the returned status tells them apart. once is the
// Idempotency-Key, or "".
func (a *API) send(ctx context.Context, method, path, once string, body, into any, expected ...int) (status int, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return 0, errors.Wrap(err, "encode a request")
		}
	}
	err = insist(ctx, func(ctx context.Context) error {
		q, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(text))
		if err != nil {
			return errors.Wrap(err, "make a request")
		}
		q.Header.Set("Authorization", "Bearer "+a.key)
		q.Header.Set("Content-Type", "application/json")
		if once != "" {
			q.Header.Set("Idempotency-Key", once)
		}
		got, err := ask(a.client, q)
		if err != nil {
			return err
		}
		if got.status == http.StatusConflict && bytes.Contains(got.body, []byte("ERR_IDEMPOTENCY_IN_PROGRESS")) {
			return errAway
		}
		status = got.status
		for _, other := range expected {
			if status == other {
				return nil
			}
		}
		if status/100 != 2 {
			return errors.Errorf("%s %s: %d: %s", method, path, status, got.body)
		}
		if into == nil {
			return nil
		}
		if err := json.Unmarshal(got.body, into); err != nil {
			return errors.Wrapf(err, "read the answer to %s %s", method, path)
		}
		return nil
	})
	return status, err
}

// data repeats a request until it is answered, and decodes the answer's data.
func (a *API) data(ctx context.Context, method, path, once string, body, into any) error {
	var whole struct{ Data json.RawMessage }
	if _, err := a.send(ctx, method, path, once, body, &whole); err != nil {
		return err
	}
	if err := json.Unmarshal(whole.Data, into); err != nil {
		return errors.Wrapf(err, "read the data of %s %s", method, path)
	}
	return nil
}

// each visits all rows of a list, page by page.
func (a *API) each(ctx context.Context, path string, visit func(row json.RawMessage) error) error {
	with := "?"
	if strings.Contains(path, "?") {
		with = "&"
	}
	for cursor := ""; ; {
		var page struct {
			Data       []json.RawMessage
			NextCursor *string
		}
		if _, err := a.send(ctx, http.MethodGet, path+cursor, "", nil, &page); err != nil {
			return err
		}
		for _, row := range page.Data {
			if err := visit(row); err != nil {
				return err
			}
		}
		if page.NextCursor == nil {
			return nil
		}
		cursor = with + url.Values{"cursor": {*page.NextCursor}}.Encode()
	}
}
