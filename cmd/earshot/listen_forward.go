package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-faster/errors"
)

// forwardedAnswer is how much of a target's answer goes back to the service, which keeps
// less of it.
const forwardedAnswer = 64 << 10

// hopHeaders are about one connection and not about the delivery (RFC 9110, 7.6.1).
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// forwarder passes deliveries on to a program under development. The service hears that
// program's answer, so a failure there is retried as it will be in production.
type forwarder struct {
	target string
	// name is the target in what the service hears, which keeps it in its log: without a
	// password or a token that the URL may have.
	name   string
	client *http.Client
}

// newForwarder judges the target, before anything is registered for it.
func newForwarder(target string) (*forwarder, error) {
	at, err := url.Parse(target)
	if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") {
		return nil, errors.New("--forward wants a URL such as http://localhost:3000/hook")
	}
	return &forwarder{target: target, name: at.Scheme + "://" + at.Host, client: &http.Client{
		// The body goes on as it is, and so does what is answered.
		Transport:     &http.Transport{DisableCompression: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// pass sends a delivery on, with the body and the headers that it came with, and returns
// what is answered. It takes as long as the service waits, because the request's context
// ends when the service hangs up.
func (f *forwarder) pass(request *http.Request, body []byte) (status int, answer []byte, reason string) {
	out, err := http.NewRequestWithContext(request.Context(), http.MethodPost, f.target, bytes.NewReader(body))
	if err != nil {
		return http.StatusBadGateway, nil, "the delivery can't be passed on"
	}
	out.Header = request.Header.Clone()
	for _, name := range hopHeaders {
		out.Header.Del(name)
	}
	response, err := f.client.Do(out)
	if err != nil {
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err // without the URL, which the line has
		}
		return http.StatusBadGateway, nil, fmt.Sprintf("%s can't be reached: %v", f.name, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(response.Body, forwardedAnswer))
	if err != nil {
		return http.StatusBadGateway, nil, fmt.Sprintf("%s broke its answer off", f.name)
	}
	if !succeeded(response.StatusCode) {
		reason = "by " + f.name
	}
	return response.StatusCode, answer, reason
}

// succeeded reports whether the service takes a status for a success.
func succeeded(status int) bool { return status/100 == 2 }
