package send

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
)

func TestAStatusIsASuccessARedirectOrAFailure(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]Class{
		0: HTTPStatus, 99: HTTPStatus, 100: HTTPStatus, 199: HTTPStatus,
		200: "", 204: "", 299: "", 300: Redirect, 304: Redirect, 399: Redirect,
		400: HTTPStatus, 499: HTTPStatus, 500: HTTPStatus, 999: HTTPStatus,
	} {
		require.Equal(t, want, ofStatus(status), status)
	}
}

func TestTheWordsForFailuresAreThoseOfTheDeliveryRecord(t *testing.T) {
	t.Parallel()
	require.Equal(t, []Class{
		"dns_error", "connection_refused", "connection_reset", "timeout", "tls_error",
		"redirect", "http_status", "blocked_address", "invalid_url",
	}, []Class{
		DNSError, ConnectionRefused, ConnectionReset, Timeout, TLSError,
		Redirect, HTTPStatus, BlockedAddress, InvalidURL,
	})
}

func TestEveryErrorHasOneClass(t *testing.T) {
	t.Parallel()
	unconnected := func() *flight { return &flight{} }
	connected := func() *flight {
		f := unconnected()
		f.conn.Store(&quietConn{})
		return f
	}
	answered := func() *flight {
		f := connected()
		f.answered.Store(true)
		return f
	}
	ended := func() *flight {
		f := answered()
		f.conn.Load().ended.Store(true)
		return f
	}
	dialed := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, c := range map[string]struct {
		err    error
		flight *flight
		want   Class
	}{
		"a refused connection":              {failedStep(ConnectionRefused, dialed(syscall.ECONNREFUSED)), unconnected(), ConnectionRefused},
		"a network without a way":           {failedStep(ConnectionRefused, dialed(syscall.ENETUNREACH)), unconnected(), ConnectionRefused},
		"a refused one after a dead one":    {failedStep(ConnectionRefused, dialed(syscall.ECONNREFUSED)), connected(), ConnectionRefused},
		"a connect that the kernel gave up": {failedStep(ConnectionRefused, dialed(syscall.ETIMEDOUT)), unconnected(), Timeout},
		"a connect that used up its share":  {failedStep(ConnectionRefused, dialed(os.ErrDeadlineExceeded)), unconnected(), Timeout},
		"a guard deep inside a dial":        {failedStep(ConnectionRefused, dialed(&stepError{BlockedAddress, errNotAllowed})), unconnected(), BlockedAddress},
		"a handshake that fails":            {failedStep(TLSError, io.EOF), unconnected(), TLSError},
		"an alert after the handshake":      {&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, connected(), TLSError},
		"a read that timed out":             {os.ErrDeadlineExceeded, connected(), Timeout},
		"a write to a closed connection":    {syscall.EPIPE, connected(), ConnectionReset},
		"something unknown when connected":  {errors.New("unknown"), connected(), ConnectionReset},
		"something unknown in an answer":    {errors.New("malformed"), answered(), HTTPStatus},
		"an answer that broke off":          {errors.New("malformed"), ended(), ConnectionReset},
		"something unknown before all that": {errors.New("unknown"), unconnected(), ConnectionRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, ofError(t.Context(), c.err, c.flight))
			wrapped := errors.Wrap(c.err, "round trip")
			require.Equal(t, c.want, ofError(t.Context(), wrapped, c.flight))
		})
	}
}

func TestALateErrorIsATimeoutUnlessTheAddressIsBlocked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, Timeout, ofError(ctx, io.EOF, &flight{}))
	require.Equal(t, Timeout, ofError(ctx, &stepError{DNSError, io.EOF}, &flight{}))
	require.Equal(t, BlockedAddress, ofError(ctx, &stepError{BlockedAddress, errNotAllowed}, &flight{}))
}
