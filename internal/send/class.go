package send

import (
	"context"
	"net"

	"github.com/go-faster/errors"
)

// Class is the reason why an attempt failed, as one word that is safe to store and to show. It is
// empty if the attempt didn't fail.
type Class string

// Every Class that this package reports.
const (
	// DNSError: the host's name has no address, or looking it up failed.
	DNSError Class = "dns_error"
	// ConnectionRefused: no connection was made, because the receiver refused it or the network has
	// no route to the address.
	ConnectionRefused Class = "connection_refused"
	// ConnectionReset: the receiver closed the connection before its answer or in the middle of the
	// answer's headers.
	ConnectionReset Class = "connection_reset"
	// Timeout: the headers weren't complete within the attempt's time. The class also covers an
	// attempt that the caller canceled.
	Timeout Class = "timeout"
	// TLSError: the handshake failed. The certificate is untrusted, expired or for another name,
	// the protocol is below TLS 1.2, or the connection broke off.
	TLSError Class = "tls_error"
	// Redirect: a 3xx status, which is a failure and never followed
	// (specification, Delivery headers).
	Redirect Class = "redirect"
	// HTTPStatus: a status that is neither 2xx nor 3xx. If Outcome.Status is 0, the receiver's
	// answer had no valid HTTP headers within the size limit.
	HTTPStatus Class = "http_status"
	// BlockedAddress: the Guard refuses the address, or one of the addresses.
	BlockedAddress Class = "blocked_address"
	// InvalidURL: the URL breaks a rule of Guard.CheckURL.
	InvalidURL Class = "invalid_url"
)

// stepError is an error of a step that can fail in only one way. The step sets the class, which is
// more reliable than the error's text.
type stepError struct {
	class Class
	err   error
}

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// failedStep gives err a class: the class of a step within err, or Timeout if the time ran out, or
// else the given class.
func failedStep(class Class, err error) error {
	var inner *stepError
	switch {
	case errors.As(err, &inner):
		class = inner.class
	case isTimeout(err):
		class = Timeout
	}
	return &stepError{class, err}
}

// ofStatus returns the class of a complete answer (specification, Delivery and retries rule 1). It
// uses only the first digit, so that undefined statuses have a class, too.
func ofStatus(status int) Class {
	switch status / 100 {
	case 2:
		return ""
	case 3:
		return Redirect
	default:
		return HTTPStatus
	}
}

// ofError returns the class of an attempt without an answer. Each error has exactly one class. For
// unknown errors the progress of the attempt decides: not connected, connected, or reading an
// answer. A header value that HTTP can't carry counts as not connected.
func ofError(ctx context.Context, err error, f *flight) Class {
	var step *stepError
	isStep := errors.As(err, &step)
	conn := f.conn.Load()
	switch {
	case isStep && step.class == BlockedAddress:
		return BlockedAddress
	case ctx.Err() != nil:
		// The time is up, and other errors are a consequence of that.
		return Timeout
	case isStep:
		return step.class
	case isTimeout(err):
		return Timeout
	case isTLS(err):
		return TLSError
	case conn == nil:
		return ConnectionRefused
	case f.answered.Load() && !conn.ended.Load():
		return HTTPStatus
	default:
		return ConnectionReset
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// isTLS reports TLS errors after the handshake. A receiver that requires a client certificate sends
// an alert only then. crypto/tls marks alerts only by the operation.
func isTLS(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}
