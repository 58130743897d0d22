package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-faster/errors"
)

// forwardedAnswer limits the part of a target's answer that is returned to the service. The service
// stores less than this.
const forwardedAnswer = 64 << 10

// hopHeaders belong to one connection and not to the delivery (RFC 9110, 7.6.1).
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// forwarder passes deliveries on to a program under development. The service receives that
// program's answer, so it retries a failed delivery as in production.
type forwarder struct {
	target string
	// name identifies the target in answers, which the service logs. It omits a password or token
	// in the URL.
	name   string
	client *http.Client
}

// newForwarder validates the target before a webhook is registered.
func newForwarder(target string) (*forwarder, error) {
	at, err := url.Parse(target)
	if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") {
		return nil, errors.New("--forward wants a URL such as http://localhost:3000/hook")
	}
	return &forwarder{target: target, name: at.Scheme + "://" + at.Host, client: &http.Client{
		// Request and response bodies pass unchanged.
		Transport:     &http.Transport{DisableCompression: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// pass forwards a delivery with its original body and headers and returns the target's answer. The
// request's context ends when the service hangs up, so forwarding takes no longer than that.
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
			err = outer.Err // without the URL, which is printed anyway
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

// succeeded reports whether the service treats a status as success.
func succeeded(status int) bool { return status/100 == 2 }
