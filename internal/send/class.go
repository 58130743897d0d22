package send

import (
	"context"
	"net"

	"github.com/go-faster/errors"
)

// Class says why an attempt failed, in one word that is safe to store and to
// show. The empty Class means that it did not fail.
type Class string

// Every Class that this package reports.
const (
	// DNSError: the host's name has no address, or looking it up failed.
	DNSError Class = "dns_error"
	// ConnectionRefused: no connection came about, by refusal or because the
	// network has no way to the address.
	ConnectionRefused Class = "connection_refused"
	// ConnectionReset: the receiver ended the connection before it had
	// answered, or in the middle of its answer's headers.
	ConnectionReset Class = "connection_reset"
	// Timeout: no complete headers within the attempt's time. An attempt whose
	// caller gave up has this class, too.
	Timeout Class = "timeout"
	// TLSError: the handshake failed, by an untrusted, expired or foreign
	// certificate, by a protocol below TLS 1.2, or by breaking off.
	TLSError Class = "tls_error"
	// Redirect: a 3xx status, which is a failure and never followed
	// (specification, Delivery headers).
	Redirect Class = "redirect"
	// HTTPStatus: a status that is neither 2xx nor 3xx. With an
	// Outcome.Status of 0 the receiver did answer, but not with HTTP headers
	// that can be read within their bound.
	HTTPStatus Class = "http_status"
	// BlockedAddress: the Guard refuses the address, or one of the addresses.
	BlockedAddress Class = "blocked_address"
	// InvalidURL: the URL's text breaks a rule of Guard.CheckURL.
	InvalidURL Class = "invalid_url"
)

// stepError is an error of a step that can fail in one way only, so that the
// step knows the class better than the error's text does.
type stepError struct {
	class Class
	err   error
}

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// failedStep gives err a class: that of a step within err, or Timeout where the
// time ran out, or else the one that the step ends with.
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

// ofStatus is the class of a complete answer (specification, Delivery and
// retries rule 1). It looks at the hundreds only, so that statuses which
// nobody has defined have a class.
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

// ofError is the class of an attempt that got no answer. Each error has
// exactly one; what fits nowhere is told by how far the attempt came: not
// connected (a header value that HTTP cannot carry, too), connected, or
// reading an answer.
func ofError(ctx context.Context, err error, f *flight) Class {
	var step *stepError
	isStep := errors.As(err, &step)
	conn := f.conn.Load()
	switch {
	case isStep && step.class == BlockedAddress:
		return BlockedAddress
	case ctx.Err() != nil:
		// The time is up. Whatever broke then broke because of that.
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

// isTLS finds what goes wrong after the handshake. A receiver that wants a
// client's certificate says so only then, by an alert, and crypto/tls marks
// alerts by the operation alone.
func isTLS(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}
