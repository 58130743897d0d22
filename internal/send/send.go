package send

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const (
	// AttemptTimeout limits an attempt, from the DNS lookup to the last byte of the answer's body.
	AttemptTimeout = 10 * time.Second
	// maxHeader limits the headers of an answer together with those of all 1xx answers before it,
	// in bytes. Browsers and servers accept less.
	maxHeader = 64 << 10
	// maxRead limits the bytes of a body that are read. Most bodies are shorter. Only a connection
	// whose answer was read to its end can be reused.
	maxRead = 64 << 10
	// maxKept limits the bytes of a body that are kept: enough for an error page, and small enough
	// for a table of attempts.
	maxKept = 16 << 10
	// maxIdle and maxIdlePerHost limit the idle connections. Up to 64 attempts to one webhook run
	// at the same time, and each needs its connection again. 256 is far below the usual limit of
	// 1024 open files.
	maxIdle        = 256
	maxIdlePerHost = 64
	// idleTimeout closes an idle connection. It is shorter than the 60 s of most proxies, and
	// longer than the pause between events of a busy organization.
	idleTimeout = 30 * time.Second
)

// Options configure a Sender. With the zero Options it reaches public addresses over https and uses
// the system's certificate authorities.
type Options struct {
	// AllowCIDRs allows networks that are otherwise forbidden, see NewGuard.
	AllowCIDRs []netip.Prefix
	// DenyCIDRs forbids further networks, see Guard.Denying.
	DenyCIDRs []netip.Prefix
	// AllowHTTP allows the scheme http.
	AllowHTTP bool
	// Timeout limits a whole attempt; 0 is 10 s.
	Timeout time.Duration
	// RootCAs are the trusted authorities; nil is the system's.
	RootCAs *x509.CertPool
	// Resolver looks names up; nil is net.DefaultResolver.
	Resolver Resolver
}

// Request is one delivery to attempt.
type Request struct {
	// URL is the receiver's URL. Every Send checks it again.
	URL string
	// Secret is the webhook's complete secret, including its prefix.
	Secret string
	// Former is the previous secret, while the receiver may still use it. It is empty if there is
	// none.
	Former string
	// EventType and DeliveryID are header values: printable ASCII.
	EventType, DeliveryID string
	// Sequence is the event's number within its organization; 0 is none.
	Sequence int64
	// TraceParent is the value of the traceparent header (W3C Trace Context); empty is none.
	TraceParent string
	// Body is the payload. It is sent unchanged.
	Body []byte
}

// Outcome is the result of an attempt. It contains no error text.
type Outcome struct {
	// StartedAt is the start of the attempt in UTC. The signature contains the same time.
	StartedAt time.Time
	// Duration is the time to the last byte that was read.
	Duration time.Duration
	// Status is the answer's status, or 0 when no complete headers arrived.
	Status int
	// Body is the beginning of the answer's body, at most 16 KiB, as it arrived. It may be
	// compressed, not UTF-8, or contain NUL bytes.
	Body []byte
	// Error is empty only after a 2xx status.
	Error Class
}

// OK reports success: any 2xx status (specification, Delivery and retries
// rule 1).
func (o Outcome) OK() bool { return o.Error == "" }

// Sender makes attempts. It reuses connections to receivers and is safe for concurrent use.
type Sender struct {
	// Guard checks every URL and address. Registration uses it, too.
	Guard

	timeout   time.Duration
	transport *http.Transport
}

// New returns a Sender. It opens nothing before the first Send.
func New(o Options) *Sender {
	d := &dialer{
		guard:    NewGuard(o.AllowCIDRs, o.AllowHTTP).Denying(o.DenyCIDRs),
		resolver: o.Resolver,
		tls: &tls.Config{
			MinVersion: tls.VersionTLS12,
			RootCAs:    o.RootCAs,
			NextProtos: []string{"http/1.1"},
		},
	}
	if d.resolver == nil {
		d.resolver = net.DefaultResolver
	}
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = AttemptTimeout
	}
	return &Sender{Guard: d.guard, timeout: timeout, transport: newTransport(d)}
}

// Timeout returns the maximum duration of an attempt.
func (s *Sender) Timeout() time.Duration { return s.timeout }

// newTransport builds the transport with explicit settings. Proxy stays nil: a proxy from the
// environment would see the requests, and the guard would check the proxy's address.
func newTransport(d *dialer) *http.Transport {
	// HTTP/1.1 only. Over HTTP/2 the transport repeats a request up to six times when the receiver
	// refuses the stream, and it buffers megabytes of unread body. Single small POSTs gain nothing
	// from HTTP/2.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:            d.plain,
		DialTLSContext:         d.secure,
		Protocols:              protocols,
		DisableCompression:     true, // no Accept-Encoding, nothing inflated
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         readBuffer,
	}
}

// Close closes the idle connections. Attempts under way continue, and their connections close by
// the idle timeout.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// Send makes exactly one attempt: it signs r, posts it, reads the answer, and returns the outcome.
// Errors are reported only in Outcome.Error.
//
// The status decides as soon as the headers are complete. A 2xx is a success even if its body
// stalls, breaks off or has a wrong length. The receiver has confirmed the event, and a second
// delivery would be a duplicate. The attempt still ends by its timeout or with ctx. If ctx ended
// it, Error is Timeout, and the caller should not count that against the receiver.
func (s *Sender) Send(ctx context.Context, r Request) Outcome {
	started := time.Now()
	out := Outcome{StartedAt: started.Round(0).UTC()}
	s.attempt(ctx, r, started, &out)
	out.Duration = time.Since(started)
	return out
}

func (s *Sender) attempt(ctx context.Context, r Request, started time.Time, out *Outcome) {
	target, verdict := s.target(r.URL)
	if !verdict.OK() {
		out.Error = verdict.Class
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	f := &flight{}
	// The transport is used directly, because http.Client follows redirects and puts the URL into
	// its errors.
	answer, err := s.transport.RoundTrip(newRequest(f.watch(ctx), target, r, started)) //nolint:bodyclose // readBody closes it
	if err != nil {
		out.Error = ofError(ctx, err, f)
		return
	}
	out.Status, out.Error = answer.StatusCode, ofStatus(answer.StatusCode)
	out.Body = readBody(answer)
}

// readBody returns the beginning of the body and closes it. It ignores errors, because the status
// has already decided.
func readBody(answer *http.Response) []byte {
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode < http.StatusOK {
		return nil // 101: another protocol without an end follows
	}
	kept := make([]byte, maxKept)
	n, err := io.ReadFull(answer.Body, kept)
	if err == nil {
		_, _ = io.CopyN(io.Discard, answer.Body, maxRead-maxKept)
	}
	return bytes.Clone(kept[:n])
}
