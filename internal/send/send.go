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
	// AttemptTimeout is the time of an attempt, from looking the name up to
	// the last byte of the answer's body.
	AttemptTimeout = 10 * time.Second
	// maxHeader bounds the headers of an answer together with those of all
	// 1xx answers before it, in bytes. Browsers and servers agree on less.
	maxHeader = 64 << 10
	// maxRead bounds the body that is read, in bytes. Most answers end before
	// it, and a connection whose answer was read to its end serves again.
	maxRead = 64 << 10
	// maxKept bounds the body that is kept, in bytes: enough for an error
	// page, little enough for a table of attempts.
	maxKept = 16 << 10
	// maxIdle and maxIdlePerHost bound the kept connections. 64 attempts run at
	// once toward one webhook, and each comes back for its connection; 256 stays far below
	// the usual limit of 1024 open files.
	maxIdle        = 256
	maxIdlePerHost = 64
	// idleTimeout ends an idle connection: shorter than the 60 s of most
	// proxies, longer than the pause between events of a busy organization.
	idleTimeout = 30 * time.Second
)

// Options configure a Sender. The zero Options reach public addresses over
// https with the system's certificate authorities.
type Options struct {
	// AllowCIDRs opens networks that are closed otherwise, see NewGuard.
	AllowCIDRs []netip.Prefix
	// AllowHTTP opens the scheme http.
	AllowHTTP bool
	// Timeout is the time of a whole attempt; 0 is 10 s.
	Timeout time.Duration
	// RootCAs are the authorities to trust; nil is the system's.
	RootCAs *x509.CertPool
	// Resolver looks names up; nil is net.DefaultResolver.
	Resolver Resolver
}

// Request is one delivery to attempt.
type Request struct {
	// URL is the receiver's, judged anew by every Send.
	URL string
	// Secret is the webhook's whole secret, prefix included.
	Secret string
	// Former is the secret before, while the receiver may still go by it; empty is none.
	Former string
	// EventType and DeliveryID are header values: printable ASCII.
	EventType, DeliveryID string
	// Sequence is the event's number among its organization's; 0 is none.
	Sequence int64
	// TraceParent is the header of that name (W3C Trace Context); empty is none.
	TraceParent string
	// Body is the payload. It is sent byte for byte and not changed.
	Body []byte
}

// Outcome is what became of an attempt. It holds no text of an error.
type Outcome struct {
	// StartedAt is the wall clock in UTC at which the attempt began, which is
	// the moment that the signature names.
	StartedAt time.Time
	// Duration is the time to the last byte that was read.
	Duration time.Duration
	// Status is that of the answer, or 0 when no complete headers came.
	Status int
	// Body is the beginning of the answer's body, at most 16 KiB, as it
	// came: compressed, not UTF-8 or with NUL bytes, if the receiver likes.
	Body []byte
	// Error is empty after a 2xx status, and only then.
	Error Class
}

// OK reports success: any 2xx status (specification, Delivery and retries
// rule 1).
func (o Outcome) OK() bool { return o.Error == "" }

// Sender makes attempts. It keeps connections to receivers between them and is
// safe for concurrent use.
type Sender struct {
	// Guard judges every URL and address; it serves registration, too.
	Guard

	timeout   time.Duration
	transport *http.Transport
}

// New returns a Sender. It opens nothing before the first Send.
func New(o Options) *Sender {
	d := &dialer{
		guard:    NewGuard(o.AllowCIDRs, o.AllowHTTP),
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

// Timeout is how long an attempt lasts at most.
func (s *Sender) Timeout() time.Duration { return s.timeout }

// newTransport builds the transport with every choice written out. Proxy stays
// nil: the variables of the environment would put somebody else's machine
// between us and the receiver, and the guard would judge the proxy's address.
func newTransport(d *dialer) *http.Transport {
	// HTTP/1.1 only. Over HTTP/2 the transport sends a request again, up to
	// six times, when the receiver refuses the stream, and buffers megabytes
	// of a body that nobody reads. One small POST at a time gains nothing.
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

// Close ends the connections that are idle. Attempts under way go on; their
// connections end by idleness.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// Send makes one attempt and never more than one: it signs r at this moment,
// posts it, reads the answer, and says what happened. It does not fail
// otherwise than by Outcome.Error.
//
// The status decides as soon as the headers are complete. A 2xx whose body
// then stalls, breaks off or has another length than announced is a success:
// the receiver said that it has the event, and to send it again would be
// wrong. The attempt ends by its timeout, or when ctx does, all the same. When
// ctx ended it, Error is Timeout; the caller, who knows, should not hold that
// against the receiver.
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
	// The transport and not a http.Client, which follows redirects and puts
	// the URL into its errors.
	answer, err := s.transport.RoundTrip(newRequest(f.watch(ctx), target, r, started)) //nolint:bodyclose // readBody closes it
	if err != nil {
		out.Error = ofError(ctx, err, f)
		return
	}
	out.Status, out.Error = answer.StatusCode, ofStatus(answer.StatusCode)
	out.Body = readBody(answer)
}

// readBody returns the beginning of the body and closes it. Errors are not
// told: the status has decided.
func readBody(answer *http.Response) []byte {
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode < http.StatusOK {
		return nil // 101: what follows is another protocol, without an end
	}
	kept := make([]byte, maxKept)
	n, err := io.ReadFull(answer.Body, kept)
	if err == nil {
		_, _ = io.CopyN(io.Discard, answer.Body, maxRead-maxKept)
	}
	return bytes.Clone(kept[:n])
}
