package e2e

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// fault is the treatment of a request.
type fault string

const (
	passed  fault = "passed on"
	dropped fault = "dropped before it was passed on"
	lost    fault = "passed on, and its answer lost"
	cut     fault = "passed on, and its answer cut in the middle"
	doubled fault = "passed on twice"
	delayed fault = "passed on late"
)

// faultsInTurn are the faults of successive requests. The repetition of a failed request passes,
// unless other requests come in between.
var faultsInTurn = []fault{passed, dropped, passed, lost, passed, cut, passed, doubled, passed, delayed}

// lateness is long compared with an answer and short compared with a timeout.
const lateness = 300 * time.Millisecond

// faultyProxy passes requests on to a service as a bad network does, and returns its address.
// Writes and reads go through the faults separately, so only their order decides which request
// meets which fault. Send at least seven writes and four reads: the cleanup fails the test if a
// fault was not used.
func faultyProxy(t testing.TB, to string) (url string) {
	t.Helper()
	p := &proxy{to: to, transport: &http.Transport{DisableCompression: true}, seen: map[bool]int{}, did: map[bool]map[fault]int{true: {}, false: {}}}
	server := httptest.NewUnstartedServer(p)
	server.Config.BaseContext = func(net.Listener) context.Context { return t.Context() }
	server.Start()
	t.Cleanup(func() {
		server.Close()
		p.transport.CloseIdleConnections()
		if t.Failed() {
			return // The program may have ended early.
		}
		for _, f := range []fault{dropped, lost, cut, doubled, delayed} {
			assert.Positive(t, p.did[true][f], "no write was %s", f)
		}
		for _, f := range []fault{dropped, lost, cut} {
			assert.Positive(t, p.did[false][f], "no read was %s", f)
		}
	})
	return server.URL
}

type proxy struct {
	to        string
	transport *http.Transport

	mu sync.Mutex
	// seen and did count writes under true and reads under false.
	seen map[bool]int
	did  map[bool]map[fault]int
}

// next returns the fault of a request.
func (p *proxy) next(method string) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	write := method != http.MethodGet
	f := faultsInTurn[p.seen[write]%len(faultsInTurn)]
	p.seen[write]++
	p.did[write][f]++
	return f
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	f := p.next(r.Method)
	switch f {
	case dropped:
		panic(http.ErrAbortHandler) // This closes the connection.
	case delayed:
		select {
		case <-time.After(lateness):
		case <-r.Context().Done():
		}
	case doubled:
		p.pass(r, body)
	}
	status, header, text := p.pass(r, body)
	if f == lost {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	if f == cut {
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(text)
}

// pass sends a request to the service and reads its answer. If there is none, the client gets none
// either.
func (p *proxy) pass(r *http.Request, body []byte) (status int, header http.Header, text []byte) {
	onward, err := http.NewRequestWithContext(r.Context(), r.Method, p.to+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	onward.Header = r.Header.Clone()
	answer, err := p.transport.RoundTrip(onward)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = answer.Body.Close() }()
	if text, err = io.ReadAll(answer.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	return answer.StatusCode, answer.Header, text
}
