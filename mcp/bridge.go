package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bridge carries messages between a desktop client, which speaks over stdin and stdout, and the
// service, which speaks over HTTP. It passes messages on unchanged, because the service has the
// tools.
type Bridge struct {
	// URL is the service's base address.
	URL string
	// Key is an API key.
	Key string
	In  io.Reader
	Out io.Writer

	// version is the protocol version that client and service have agreed on.
	version atomic.Value
}

const (
	// No call of a tool takes this long.
	bridgeTimeout = time.Minute
	// A desktop client with more concurrent messages has to wait.
	bridgeConcurrency = 16
	// maxRetryAfter bounds the delay in a gateway's answer. A longer delay is a guess, and an agent
	// should look again within a day.
	maxRetryAfter = 24 * time.Hour
	// refusedCode is JSON-RPC's first code for errors that a server defines.
	refusedCode = -32000
)

// Run carries messages until In or ctx ends. It fails if the service can't be reached or does not
// accept the key, and at text in In that is not a message. When ctx ends, Run returns without waiting,
// because a write to Out can't be interrupted.
func (b *Bridge) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- b.carryAll(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (b *Bridge) carryAll(ctx context.Context) error {
	if err := b.check(ctx); err != nil {
		return err
	}
	desktop, err := (&sdk.IOTransport{Reader: io.NopCloser(b.In), Writer: stays{b.Out}}).Connect(ctx)
	if err != nil {
		return errors.Wrap(err, "connect to the desktop client")
	}
	var all sync.WaitGroup
	defer all.Wait()
	places := make(chan struct{}, bridgeConcurrency)
	for {
		m, err := desktop.Read(ctx)
		switch call, ok := m.(*jsonrpc.Request); {
		case errors.Is(err, io.EOF), ctx.Err() != nil: // the client has closed its end, or has sent a signal
			return nil
		case err != nil:
			_, _ = fmt.Fprintf(b.Out, "%s\n", rpcError(nil, jsonrpc.CodeParseError, "the message is not valid JSON-RPC", nil))
			return errors.Wrap(err, "read a message")
		case ok && call.Method == "initialize":
			b.carry(ctx, desktop, m) // later messages need its outcome
		default:
			places <- struct{}{}
			all.Go(func() {
				b.carry(ctx, desktop, m)
				<-places
			})
		}
	}
}

// stays is a writer that is not closed, because it belongs to the caller.
type stays struct{ io.Writer }

func (stays) Close() error { return nil }

// check verifies the base address and the key.
func (b *Bridge) check(ctx context.Context) error {
	base, err := url.Parse(b.URL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return errors.New("the base address must look like https://feedback.example.com")
	}
	b.URL = strings.TrimSuffix(b.URL, "/")
	status, body, err := b.me(ctx)
	switch {
	case err != nil:
		return errors.Wrapf(err, "reach the service at %s", base.Redacted())
	case status == http.StatusUnauthorized:
		return errors.Errorf("the service at %s doesn't take the API key: it is unknown, revoked or expired", base.Redacted())
	case status != http.StatusOK || !bytes.Contains(body, []byte(`"apiKey"`)):
		return errors.Errorf("the server at %s (status %d) isn't the service; check the base address", base.Redacted(), status)
	}
	return nil
}

// me asks the service about the key.
func (b *Bridge) me(ctx context.Context) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+"/v1/me", nil)
	if err != nil {
		return 0, nil, errors.Wrap(err, "make the request")
	}
	answer, err := (&http.Client{Transport: &post{bridge: b}, Timeout: bridgeTimeout}).Do(r)
	if err != nil {
		return 0, nil, errors.Wrap(err, "send")
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		return 0, nil, errors.Wrap(err, "read the answer")
	}
	return answer.StatusCode, body, nil
}

// carry sends a message and passes the answer back. A call that can't be delivered is answered
// with an error, so that the client does not wait for it.
func (b *Bridge) carry(ctx context.Context, desktop sdk.Connection, m jsonrpc.Message) {
	call, _ := m.(*jsonrpc.Request)
	to := &post{bridge: b}
	answer, err := to.send(ctx, m)
	switch done, ok := answer.(*jsonrpc.Response); {
	case ctx.Err() != nil: // the client has ended the bridge
		return
	case err != nil && call != nil && call.IsCall():
		answer = &jsonrpc.Response{ID: call.ID, Error: to.failure()}
	case answer == nil: // no answer belongs to a notification
		return
	case ok && call.Method == "initialize":
		var agreed struct {
			Version string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(done.Result, &agreed)
		b.version.Store(agreed.Version)
	}
	_ = desktop.Write(ctx, answer) // an error means that the client is gone
}

// post is the way of one message to the service. Each message has a connection of its own, because the
// library gives up a connection after one answer that it can't read.
type post struct {
	bridge *Bridge
	// refused is the status of a refusal, 0 without one. text and after are its start and its header
	// Retry-After.
	refused int
	text    []byte
	after   string
}

// send returns the answer to a call, and nil for other messages.
func (p *post) send(ctx context.Context, m jsonrpc.Message) (jsonrpc.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, bridgeTimeout)
	defer cancel()
	service, err := (&sdk.StreamableClientTransport{
		Endpoint: p.bridge.URL + Path, HTTPClient: &http.Client{Transport: p}, MaxRetries: -1,
	}).Connect(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "connect")
	}
	defer func() { _ = service.Close() }()
	if err := service.Write(ctx, m); err != nil {
		return nil, errors.Wrap(err, "send")
	}
	if call, ok := m.(*jsonrpc.Request); !ok || !call.IsCall() {
		return nil, nil
	}
	answer, err := service.Read(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "read the answer")
	}
	return answer, nil
}

// maxRefusal is more than any error of the API.
const maxRefusal = 64 << 10

// RoundTrip adds the key and the version of the protocol, and keeps a refusal.
func (p *post) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+p.bridge.Key)
	const version = "Mcp-Protocol-Version"
	if agreed, _ := p.bridge.version.Load().(string); agreed != "" && r.Header.Get(version) == "" {
		r.Header.Set(version, agreed)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		p.refused, p.after = answer.StatusCode, answer.Header.Get("Retry-After")
		p.text, _ = io.ReadAll(io.LimitReader(answer.Body, maxRefusal)) // a part of it is no error of the API
		_ = answer.Body.Close()
		answer.Body = io.NopCloser(bytes.NewReader(p.text))
	}
	return answer, err //nolint:wrapcheck // The client wraps it.
}

// failure is the error for a call that failed, which an agent can act on.
func (p *post) failure() error {
	if said, err := jsonrpc.DecodeMessage(p.text); err == nil {
		if answer, ok := said.(*jsonrpc.Response); ok && answer.Error != nil {
			return answer.Error
		}
	}
	words, data := "The service can't be reached; try again later.", map[string]any{}
	if p.refused != 0 {
		words = fmt.Sprintf("The service answered %d %s.", p.refused, http.StatusText(p.refused))
		data["status"] = p.refused
		var e envelope[any]
		if json.Unmarshal(p.text, &e) == nil && e.Error.Code != "" {
			words, data["code"] = e.Error.Message, e.Error.Code
		}
		if seconds, ok := RetryAfter(p.after, time.Now()); ok {
			words = fmt.Sprintf("%s Try again in %d seconds.", words, seconds)
			data["retry_after"] = seconds
		}
	}
	raw, _ := json.Marshal(data) // numbers and a string
	return &jsonrpc.Error{Code: refusedCode, Message: words, Data: raw}
}

// RetryAfter returns the delay until the next attempt in whole seconds. The header has a number of
// seconds or a date (RFC 9110, section 10.2.3), and gateways send either.
func RetryAfter(header string, now time.Time) (seconds int, ok bool) {
	if at, err := http.ParseTime(header); err == nil {
		wait := min(max(at.Sub(now), 0), maxRetryAfter)
		return int(math.Ceil(wait.Seconds())), true
	}
	n, err := strconv.ParseUint(header, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return int(min(n, uint64(maxRetryAfter/time.Second))), true
}
