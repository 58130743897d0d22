package send

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/go-faster/errors"
)

// maxDialed limits the addresses of one name that an attempt tries. The owner of a name can list
// hundreds of foreign addresses. Eight is the usual answer of a large service, four of each family.
const maxDialed = 8

// Resolver looks up the addresses of a name. *net.Resolver implements it. The network is always
// "ip", for IPv4 and IPv6 together.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

var errNotAllowed = errors.New("address is not allowed")

// dialer connects to addresses that the guard allows. It looks a name up once and dials the checked
// addresses, so that a second, different DNS answer has no effect.
type dialer struct {
	guard    Guard
	resolver Resolver
	tls      *tls.Config
}

// plain connects over TCP. It is a Transport.DialContext.
func (d *dialer) plain(ctx context.Context, _, hostport string) (net.Conn, error) {
	ctx = attemptOf(ctx)
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, errors.Wrap(err, "split host and port")
	}
	raw, err := d.connect(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return newQuietConn(raw, raw), nil
}

// secure connects and does the TLS handshake. It is a Transport.DialTLSContext.
func (d *dialer) secure(ctx context.Context, _, hostport string) (net.Conn, error) {
	ctx = attemptOf(ctx)
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, errors.Wrap(err, "split host and port")
	}
	raw, err := d.connect(ctx, host, port)
	if err != nil {
		return nil, err
	}
	config := d.tls.Clone()
	config.ServerName = host
	secured := tls.Client(raw, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, failedStep(TLSError, errors.Wrap(err, "handshake"))
	}
	return newQuietConn(secured, raw), nil
}

// connect tries the addresses of a host one after the other. If all fail, it returns the error of
// the first, which the resolver prefers.
func (d *dialer) connect(ctx context.Context, host, port string) (net.Conn, error) {
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var first error
	for i, addr := range addrs {
		limited, cancel := share(ctx, len(addrs)-i)
		conn, err := d.try(limited, net.JoinHostPort(addr.String(), port))
		cancel()
		if err != nil {
			if first == nil {
				first = failedStep(ConnectionRefused, errors.Wrap(err, "dial"))
			}
			continue // the next tries fail immediately when the attempt's time is up
		}
		return conn, nil
	}
	return nil, first
}

// share gives an address an equal part of the time that is left for it and the following ones. An
// address that swallows packets must not use up the time of the next one.
func share(ctx context.Context, left int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
}

func (d *dialer) try(ctx context.Context, hostport string) (net.Conn, error) {
	dialer := net.Dialer{ControlContext: d.control}
	return dialer.DialContext(ctx, "tcp", hostport)
}

// control is the last check, on the socket's own address. It finds nothing unless resolve has a
// bug.
func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return &stepError{BlockedAddress, errors.Wrap(err, "parse address")}
	}
	if !d.guard.Allowed(addr.Addr()) {
		return &stepError{BlockedAddress, errNotAllowed}
	}
	return nil
}

// resolve returns the addresses to dial. A single forbidden address refuses the whole host, because
// a name that points to both internal and public addresses is suspicious.
func (d *dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	var addrs []netip.Addr
	if addr, err := netip.ParseAddr(host); err == nil {
		addrs = []netip.Addr{addr}
	} else if addrs, err = d.resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, &stepError{DNSError, errors.Wrap(err, "resolve")}
	}
	if len(addrs) == 0 {
		return nil, &stepError{DNSError, errors.New("the name has no address")}
	}
	for i, addr := range addrs {
		if !d.guard.Allowed(addr) {
			return nil, &stepError{BlockedAddress, errNotAllowed}
		}
		addrs[i] = addr.Unmap()
	}
	return addrs[:min(len(addrs), maxDialed)], nil
}
