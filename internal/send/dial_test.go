package send

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestANameWithOneInnerAddressIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	r := receive(t, answering(response("200 OK", "")))
	for name, addrs := range map[string][]string{
		"inner address last":                {"127.0.0.1", "10.0.0.1"},
		"inner address first":               {"10.0.0.1", "127.0.0.1"},
		"inner address mapped into IPv6":    {"127.0.0.1", "::ffff:169.254.169.254"},
		"inner address embedded in IPv6":    {"127.0.0.1", "64:ff9b::c0a8:1"},
		"inner address beyond the eighth":   {"127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "::1"},
		"IPv6 loopback beside IPv4":         {"127.0.0.1", "::1"},
		"an address that does not exist":    {"127.0.0.1", "0.0.0.0"},
		"a documentation address beside it": {"127.0.0.1", "2001:db8::1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := opened()
			o.Resolver = &names{table: map[string][]string{"receiver.test": addrs}}
			out := post(t, newSender(t, o), "http://receiver.test:"+r.port()+"/")
			require.Equal(t, BlockedAddress, out.Error)
			require.Zero(t, r.conns.Load())
		})
	}
}

// fickle answers with an allowed address first and with an internal one afterwards, as a malicious
// name does that tries to pass a check.
type fickle struct{ lookups atomic.Int32 }

func (f *fickle) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if f.lookups.Add(1) == 1 {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
}

func TestANameThatChangesBetweenLookUpsIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	r := receive(t, answering(response("200 OK", "")))
	resolver := &fickle{}
	o := opened()
	o.Resolver = resolver
	s := newSender(t, o)
	require.True(t, post(t, s, "http://receiver.test:"+r.port()+"/").OK())
	require.EqualValues(t, 1, resolver.lookups.Load())
	require.Equal(t, BlockedAddress, post(t, s, "http://other.test:"+r.port()+"/").Error)
	require.EqualValues(t, 1, r.conns.Load())
}

func TestSpellingsThatOnlyAResolverUnderstandsAreJudgedByTheirAddress(t *testing.T) {
	t.Parallel()
	o := Options{AllowHTTP: true, Resolver: &names{table: map[string][]string{
		"rebound.test": {"127.0.0.1"}, "intranet": {"192.168.0.7"},
	}}}
	s := newSender(t, o)
	for _, host := range []string{"rebound.test", "rebound.test.", "REBOUND.test", "intranet", "localhost", "127.1", "[::1]"} {
		require.Equal(t, BlockedAddress, post(t, s, "http://"+host+"/").Error, host)
	}
}

func TestTheNextAddressIsTriedWhenOneRefuses(t *testing.T) {
	t.Parallel()
	r := receive(t, answering(response("200 OK", "")))
	o := opened()
	// The receiver listens only on the last of these addresses.
	o.Resolver = &names{table: map[string][]string{"receiver.test": {"127.0.0.3", "::ffff:127.0.0.2", "127.0.0.1"}}}
	out := post(t, newSender(t, o), "http://receiver.test:"+r.port()+"/")
	require.True(t, out.OK(), out.Error)
}

func TestAtMostEightAddressesOfANameAreTried(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{127, 0, 1, byte(i)}).String()
	}
	d := &dialer{guard: NewGuard(prefixes("127.0.0.0/8"), true), resolver: &names{table: map[string][]string{"many.test": many}}}
	addrs, err := d.resolve(t.Context(), "many.test")
	require.NoError(t, err)
	require.Len(t, addrs, maxDialed)
}

func TestTheSocketIsGuardedEvenIfTheLookUpWasNot(t *testing.T) {
	t.Parallel()
	r := receive(t, answering(response("200 OK", "")))
	d := &dialer{} // allows public addresses only
	_, err := d.try(t.Context(), r.addr)
	require.Error(t, err)
	require.Equal(t, BlockedAddress, ofError(t.Context(), err, &flight{}))
	require.Zero(t, r.conns.Load())
	require.Error(t, d.control(t.Context(), "tcp4", "not an address", nil))
	require.Error(t, d.control(t.Context(), "tcp6", "[::ffff:127.0.0.1]:80", nil))
	require.NoError(t, d.control(t.Context(), "tcp4", "8.8.8.8:443", nil))
}

// silent is a resolver that answers only after the attempt has ended.
type silent struct{}

func (silent) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, &net.DNSError{Err: "timeout", Name: host, IsTimeout: true}
}

func TestANameServerThatHangsCostsTheAttemptsTime(t *testing.T) {
	t.Parallel()
	o := opened()
	o.Resolver, o.Timeout = silent{}, short
	require.Equal(t, Timeout, post(t, newSender(t, o), "http://receiver.test/").Error)
}

// hurried is a resolver with its own, shorter timeout.
type hurried struct{}

func (hurried) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "timeout", Name: host, IsTimeout: true}
}

func TestANameServerThatGivesUpIsADNSError(t *testing.T) {
	t.Parallel()
	o := opened()
	o.Resolver = hurried{}
	require.Equal(t, DNSError, post(t, newSender(t, o), "http://receiver.test/").Error)
}

func TestAnAddressThatSwallowsPacketsLeavesTimeForTheNext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	whole, _ := ctx.Deadline()
	quarter, stop := share(ctx, 4)
	defer stop()
	deadline, ok := quarter.Deadline()
	require.True(t, ok)
	require.WithinDuration(t, whole.Add(-45*time.Minute), deadline, time.Minute)

	last, stop := share(ctx, 1)
	defer stop()
	deadline, _ = last.Deadline()
	require.WithinDuration(t, whole, deadline, time.Minute)
}

func TestAnAttemptWithoutLimitsStillHasThem(t *testing.T) {
	t.Parallel()
	s := newSender(t, Options{})
	require.Equal(t, 10*time.Second, s.timeout)
	require.Nil(t, s.transport.Proxy)
	require.EqualValues(t, 64<<10, s.transport.MaxResponseHeaderBytes)
	require.True(t, s.transport.DisableCompression)
	require.False(t, s.transport.Protocols.HTTP2())
	require.False(t, s.transport.Protocols.UnencryptedHTTP2())
}
