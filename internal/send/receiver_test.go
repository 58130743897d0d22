package send

import (
	"bufio"
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// short is the timeout of attempts that are expected to time out.
const short = 300 * time.Millisecond

// received is a request as it arrived over the wire.
type received struct {
	line   string
	header textproto.MIMEHeader
	body   string
}

// receiver is a server of raw connections that runs a script for each.
type receiver struct {
	addr  string
	conns atomic.Int32

	mu       sync.Mutex
	requests []received
}

// peer is one connection, seen from the receiver. It closes when the script returns.
type peer struct {
	net.Conn
	in   *bufio.Reader
	from *receiver
	nth  int // the number of the connection, from 1
}

// receive starts a receiver on loopback, which stops when the test ends. wrap may wrap the
// listener, for example in TLS.
func receive(t *testing.T, script func(*peer), wrap ...func(net.Listener) net.Listener) *receiver {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	for _, w := range wrap {
		listener = w(listener)
	}
	r := &receiver{addr: listener.Addr().String()}
	var scripts sync.WaitGroup
	done, stop := context.WithCancel(context.Background())
	scripts.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p := &peer{Conn: conn, in: bufio.NewReader(conn), from: r, nth: int(r.conns.Add(1))}
			context.AfterFunc(done, func() { _ = conn.Close() })
			scripts.Go(func() {
				defer func() { _ = conn.Close() }()
				script(p)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		stop()
		scripts.Wait()
	})
	return r
}

func (r *receiver) url(path string) string { return "http://" + r.addr + path }

func (r *receiver) port() string {
	_, port, _ := net.SplitHostPort(r.addr)
	return port
}

func (r *receiver) got() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.requests...)
}

// request reads one request and records it. It returns false if none arrived.
func (p *peer) request() bool {
	text := textproto.NewReader(p.in)
	line, err := text.ReadLine()
	if err != nil {
		return false
	}
	header, err := text.ReadMIMEHeader()
	if err != nil {
		return false
	}
	length, _ := strconv.Atoi(header.Get("Content-Length"))
	body := make([]byte, length)
	if _, err := io.ReadFull(p.in, body); err != nil {
		return false
	}
	p.from.mu.Lock()
	defer p.from.mu.Unlock()
	p.from.requests = append(p.from.requests, received{line, header, string(body)})
	return true
}

// say writes text and reports whether the other side still accepts it.
func (p *peer) say(text string) bool {
	_, err := io.WriteString(p, text)
	return err == nil
}

// untilGone waits until the sender closes the connection.
func (p *peer) untilGone() { _, _ = io.Copy(io.Discard, p.in) }

// answering returns a script that reads a request, writes text and closes the connection.
func answering(text string) func(*peer) {
	return func(p *peer) {
		if p.request() {
			p.say(text)
		}
	}
}

// serving returns a script that answers each request.
func serving(text string) func(*peer) {
	return func(p *peer) {
		for p.request() && p.say(text) {
		}
	}
}

// response writes an answer with its length.
func response(status, body string) string {
	return "HTTP/1.1 " + status + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// names is a Resolver with a fixed table that counts its lookups.
type names struct {
	table   map[string][]string
	lookups atomic.Int32
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.lookups.Add(1)
	texts, ok := n.table[strings.TrimSuffix(host, ".")]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	addrs := make([]netip.Addr, len(texts))
	for i, text := range texts {
		addrs[i] = netip.MustParseAddr(text)
	}
	return addrs, nil
}

// opened returns Options that reach the receivers of the tests.
func opened() Options {
	return Options{AllowCIDRs: prefixes("127.0.0.0/8"), AllowHTTP: true}
}

func newSender(t *testing.T, o Options) *Sender {
	t.Helper()
	s := New(o)
	t.Cleanup(s.Close)
	return s
}

func post(t *testing.T, s *Sender, url string) Outcome {
	t.Helper()
	return s.Send(t.Context(), Request{
		URL: url, Secret: testSecret, EventType: "post.created", DeliveryID: "dlv_1",
		Body: []byte(`{"event":"post.created"}`),
	})
}

// trusting returns Options that reach the receivers and trust roots.
func trusting(roots *x509.CertPool) Options {
	o := opened()
	o.RootCAs = roots
	return o
}
