package clientaddr_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/clientaddr"
)

var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}

func addressOf(peer string, forwarded ...string) netip.Addr {
	return clientaddr.Of(&http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded}}, proxies)
}

func TestForwardedAddressesCountOnlyFromTrustedProxies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"the peer":                                            {"198.51.100.7:1", nil, "198.51.100.7"},
		"an untrusted peer, despite its header":               {"198.51.100.7:1", []string{"203.0.113.1"}, "198.51.100.7"},
		"a proxy without a word":                              {"10.0.0.1:1", nil, "10.0.0.1"},
		"the address from a proxy":                            {"10.0.0.1:1", []string{"203.0.113.1"}, "203.0.113.1"},
		"not the address from the client":                     {"10.0.0.1:1", []string{"1.1.1.1, 203.0.113.1"}, "203.0.113.1"},
		"not the address from the client, in a separate line": {"10.0.0.1:1", []string{"1.1.1.1", "203.0.113.1"}, "203.0.113.1"},
		"through several proxies":                             {"10.0.0.1:1", []string{"203.0.113.1, 10.2.3.4 ,fd00::1"}, "203.0.113.1"},
		"a client among the proxies":                          {"10.0.0.1:1", []string{"10.2.3.4"}, "10.2.3.4"},
		"the proxy with an invalid address":                   {"10.0.0.1:1", []string{"203.0.113.1, unknown"}, "10.0.0.1"},
		"the last one before an invalid address":              {"10.0.0.1:1", []string{"x, 10.2.3.4"}, "10.2.3.4"},
		"one of IPv4 that is written as one of IPv6":          {"[::ffff:10.0.0.1]:1", []string{"::ffff:203.0.113.1"}, "203.0.113.1"},
		"one without its zone":                                {"[fe80::1%eth0]:1", nil, "fe80::1"},
		"one of IPv4 with its port":                           {"10.0.0.1:1", []string{"203.0.113.7:51034, 10.2.3.4:80"}, "203.0.113.7"},
		"one of IPv6 with its port":                           {"10.0.0.1:1", []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		"one of IPv6":                                         {"[fd00::1]:1", []string{"2001:db8::1"}, "2001:db8::1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, netip.MustParseAddr(c.want), addressOf(c.peer, c.forwarded...))
		})
	}
	require.Equal(t, netip.Addr{}, addressOf("@"), "a peer that has none")
}

func TestAClientHasOneAddressOfIPv4AndASubnetOfIPv6(t *testing.T) {
	t.Parallel()
	of := func(address string) netip.Prefix { return clientaddr.Network(netip.MustParseAddr(address)) }
	require.NotEqual(t, of("203.0.113.1"), of("203.0.113.2"))
	require.Equal(t, of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"))
	require.NotEqual(t, of("2001:db8:0:1::1"), of("2001:db8:0:2::1"))
	require.Equal(t, netip.Prefix{}, clientaddr.Network(netip.Addr{}))
}

// For any header that a client sends, its address is the one that the proxy saw.
func FuzzAClientCanNotChooseItsAddress(f *testing.F) {
	for _, said := range []string{"", "1.1.1.1", "10.0.0.1", "a,b", ",", "::", "10.1.1.1, ,", "10.0.0.1:80", "\x00"} {
		f.Add(said)
	}
	want := netip.MustParseAddr("203.0.113.1")
	f.Fuzz(func(t *testing.T, said string) {
		require.Equal(t, want, addressOf("10.0.0.1:1", said, want.String()))
		require.Equal(t, want, addressOf("10.0.0.1:1", said+","+want.String()))
		require.Equal(t, want, addressOf("203.0.113.1:1", said))
		require.True(t, addressOf("10.0.0.1:1", said).IsValid())
	})
}
