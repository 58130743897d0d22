package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"

	"earshot/api"
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

	client http.Client
	// version is the protocol version that client and service have agreed on.
	version atomic.Value
	writing sync.Mutex
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

// message holds the parts of a message that the bridge needs.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
	Result struct {
		Version string `json:"protocolVersion"`
	} `json:"result"`
}

// Run carries messages until In or ctx ends. It fails if the service can't be reached or does not
// accept the key. When ctx ends, Run returns without waiting, because a read of In and a write to
// Out can't be interrupted.
func (b *Bridge) Run(ctx context.Context) error {
	b.client.Timeout = bridgeTimeout
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
	var all sync.WaitGroup
	defer all.Wait()
	places := make(chan struct{}, bridgeConcurrency)
	lines := bufio.NewReader(b.In)
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var m message
			_ = json.Unmarshal(line, &m) // the service reports errors in it
			if m.Method == "initialize" {
				b.carry(ctx, line, m) // later messages need its outcome
			} else {
				places <- struct{}{}
				all.Go(func() {
					b.carry(ctx, line, m)
					<-places
				})
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.Wrap(err, "read a message")
		}
	}
}

// check verifies the base address and the key.
func (b *Bridge) check(ctx context.Context) error {
	base, err := url.Parse(b.URL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return errors.New("the base address must look like https://feedback.example.com")
	}
	b.URL = strings.TrimSuffix(b.URL, "/")
	answer, err := b.send(ctx, http.MethodGet, "/v1/me", nil, nil)
	switch {
	case err != nil:
		return errors.Wrapf(err, "reach the service at %s", base.Redacted())
	case answer.Status == http.StatusUnauthorized:
		return errors.Errorf("the service at %s doesn't take the API key: it is unknown, revoked or expired", base.Redacted())
	case answer.Status != http.StatusOK || !bytes.Contains(answer.Body, []byte(`"apiKey"`)):
		return errors.Errorf("the server at %s (status %d) isn't the service; check the base address",
			base.Redacted(), answer.Status)
	}
	return nil
}

// carry sends a message and passes the answer back. A message that can't be delivered is answered
// with an error, so that the client does not wait for it.
func (b *Bridge) carry(ctx context.Context, line []byte, m message) {
	answer, err := b.send(ctx, http.MethodPost, Path, line, b.headers(m))
	kind := ""
	if err == nil {
		kind, _, _ = mime.ParseMediaType(answer.Header.Get("Content-Type"))
	}
	var compact bytes.Buffer
	switch {
	case ctx.Err() != nil: // the client has ended the bridge
	case err == nil && answer.Status == http.StatusAccepted:
	case err == nil && kind == "application/json" && bytes.Contains(answer.Body, []byte(`"jsonrpc"`)) &&
		json.Compact(&compact, answer.Body) == nil:
		if m.Method == "initialize" {
			var done message
			_ = json.Unmarshal(answer.Body, &done)
			b.version.Store(done.Result.Version)
		}
		b.write(compact.Bytes())
	case m.ID != nil || m.Method == "":
		b.refuse(m.ID, answer, err)
	}
}

// headers repeats the parts of a message that the protocol also requires as headers.
func (b *Bridge) headers(m message) http.Header {
	h := http.Header{}
	if version := m.Params.Meta.Version; version != "" {
		h.Set("Mcp-Protocol-Version", version)
		h.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" {
			h.Set("Mcp-Name", name)
		}
	} else if version, _ := b.version.Load().(string); version != "" {
		h.Set("Mcp-Protocol-Version", version)
	}
	return h
}

func (b *Bridge) send(
	ctx context.Context, method, path string, body []byte, header http.Header,
) (*api.Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, errors.Wrap(err, "make the request")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Authorization", "Bearer "+b.Key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := b.client.Do(r)
	if err != nil {
		return nil, errors.Wrap(err, "send")
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, errors.Wrap(err, "read the answer")
	}
	return &api.Answer{Status: answer.StatusCode, Header: answer.Header, Body: got}, nil
}

// refuse answers a message that failed with an error that an agent can act on.
func (b *Bridge) refuse(id json.RawMessage, answer *api.Answer, err error) {
	words, data := "The service can't be reached; try again later.", map[string]any{}
	if err == nil {
		words = fmt.Sprintf("The service answered %d %s.", answer.Status, http.StatusText(answer.Status))
		data["status"] = answer.Status
		var e envelope[any]
		if json.Unmarshal(answer.Body, &e) == nil && e.Error.Code != "" {
			words, data["code"] = e.Error.Message, e.Error.Code
		}
		if seconds, ok := RetryAfter(answer.Header.Get("Retry-After"), time.Now()); ok {
			words = fmt.Sprintf("%s Try again in %d seconds.", words, seconds)
			data["retry_after"] = seconds
		}
	}
	b.write(rpcError(id, refusedCode, words, data))
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

func (b *Bridge) write(line []byte) {
	b.writing.Lock()
	defer b.writing.Unlock()
	_, _ = b.Out.Write(append(line, '\n')) // an error means that the client is gone
}
