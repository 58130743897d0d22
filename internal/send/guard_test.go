package send

import (
	"net/netip"
	"testing"
	"testing/quick"

	"github.com/stretchr/testify/require"
)

// neighbours holds the first and last address of every forbidden network. It also holds the
// addresses just outside, and whether they are allowed. An empty string means that there is no such
// address.
var neighbours = []struct {
	network, first, last, before, after string
	beforeAllowed, afterAllowed         bool
}{
	{"0.0.0.0/8", "0.0.0.0", "0.255.255.255", "", "1.0.0.0", false, true},
	{"10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0", true, true},
	{"100.64.0.0/10", "100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0", true, true},
	{"127.0.0.0/8", "127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0", true, true},
	{"169.254.0.0/16", "169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0", true, true},
	{"172.16.0.0/12", "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0", true, true},
	{"192.0.0.0/24", "192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0", true, true},
	{"192.0.2.0/24", "192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0", true, true},
	{"192.88.99.0/24", "192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0", true, true},
	{"192.168.0.0/16", "192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0", true, true},
	{"198.18.0.0/15", "198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0", true, true},
	{"198.51.100.0/24", "198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0", true, true},
	{"203.0.113.0/24", "203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0", true, true},
	{"224.0.0.0/4", "224.0.0.0", "239.255.255.255", "223.255.255.255", "240.0.0.0", true, false},
	{"240.0.0.0/4", "240.0.0.0", "255.255.255.255", "239.255.255.255", "", false, false},
	{"168.63.129.16/32", "168.63.129.16", "168.63.129.16", "168.63.129.15", "168.63.129.17", true, true},
	{"::/8", "::", "ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", "100::", false, false},
	{"64:ff9b::/32", "64:ff9b:0:0:0:1::", "64:ff9b:ffff:ffff:ffff:ffff:ffff:ffff", "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "64:ff9c::", false, false},
	{"100::/64", "100::", "100::ffff:ffff:ffff:ffff", "ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "100:0:0:1::", false, true},
	{"2001::/23", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::", true, true},
	{"2001:db8::/32", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::", true, true},
	{"2002::/16", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::", true, true},
	{"3fff::/20", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::", true, true},
	{"5f00::/16", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "5f01::", true, true},
	{"fc00::/7", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe00::", true, true},
	{"fe80::/10", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::", true, false},
	{"fec0::/10", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ff00::", false, false},
	{"ff00::/8", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", false, false},
}

func TestEveryForbiddenNetworkIsClosedFromItsFirstToItsLastAddress(t *testing.T) {
	t.Parallel()
	require.Len(t, neighbours, len(forbidden), "a network without a line here")
	for i, n := range neighbours {
		t.Run(n.network, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, n.network, forbidden[i].String())
			require.Equal(t, forbidden[i], forbidden[i].Masked())
			var g Guard
			require.False(t, g.Allowed(netip.MustParseAddr(n.first)))
			require.False(t, g.Allowed(netip.MustParseAddr(n.last)))
			if n.before != "" {
				require.Equal(t, n.beforeAllowed, g.Allowed(netip.MustParseAddr(n.before)))
			}
			if n.after != "" {
				require.Equal(t, n.afterAllowed, g.Allowed(netip.MustParseAddr(n.after)))
			}
		})
	}
}

func TestPublicAddressesAreOpen(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450::1",
		"::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2606:4700::1%eth0",
	} {
		require.True(t, Guard{}.Allowed(netip.MustParseAddr(text)), text)
	}
}

func TestInnerAddressesAreClosedInEveryWrapping(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1%eth0", "64:ff9b::169.254.169.254", "64:ff9b:1::1",
		"::127.0.0.1", "::ffff:0:127.0.0.1", "2002:7f00:1::", "2001:0:7f00:1::", "fe80::1%eth0", "fd00:ec2::254",
	} {
		require.False(t, Guard{}.Allowed(netip.MustParseAddr(text)), text)
	}
	require.False(t, Guard{}.Allowed(netip.Addr{}), "no address at all")
	require.False(t, NewGuard(prefixes("0.0.0.0/0", "::/0"), true).Allowed(netip.Addr{}))
}

func TestTheGuardAllowsPrivateAddressesOnlyOfConfiguredNetworks(t *testing.T) {
	t.Parallel()
	g := NewGuard([]netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"),
		netip.MustParsePrefix("::ffff:127.0.0.1/128"),
		netip.MustParsePrefix("fd00::1/32"), // not masked
		netip.MustParsePrefix("fe80::/10"),
		{}, // not valid
	}, false)
	for text, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "64:ff9b::10.1.2.3": true, "10.2.0.0": false,
		"127.0.0.1": true, "127.0.0.2": false, "fd00::7": true, "fd01::": false, "fe80::1%eth0": true, "8.8.8.8": true,
	} {
		require.Equal(t, want, g.Allowed(netip.MustParseAddr(text)), text)
	}
}

func TestADeniedNetworkIsReachedByNoAttempt(t *testing.T) {
	t.Parallel()
	g := NewGuard(prefixes("10.0.0.0/8"), false).Denying([]netip.Prefix{
		netip.MustParsePrefix("198.35.26.7/23"), // not masked
		netip.MustParsePrefix("10.1.0.0/16"),
		netip.MustParsePrefix("::ffff:8.8.8.0/120"),
		netip.MustParsePrefix("2620:0:860::/46"),
		netip.MustParsePrefix("64:ff9b::c633:6400/120"), // translated
		{}, // not valid
	})
	for text, want := range map[string]bool{
		"198.35.26.9": false, "::ffff:198.35.27.1": false, "64:ff9b::198.35.26.9": false, "198.35.28.1": true, "8.8.8.8": false,
		"2620:0:861::1": false, "2620:0:864::1": true, "10.1.2.3": false, "10.2.0.0": true,
		"64:ff9b::198.51.100.1": false, "64:ff9b::1.1.1.1": true,
	} {
		require.Equal(t, want, g.Allowed(netip.MustParseAddr(text)), text)
	}
}

func TestAnIPv6PrefixDoesNotOpenTheIPv4InsideIt(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"::/0", "64:ff9b::/96", "::/8"} {
		g := NewGuard(prefixes(prefix), false)
		require.False(t, g.Allowed(netip.MustParseAddr("64:ff9b::10.0.0.1")), prefix)
		require.False(t, g.Allowed(netip.MustParseAddr("::ffff:10.0.0.1")), prefix)
	}
}

// wrappings returns all addresses that mean the IPv4 address x.
func wrappings(x [4]byte) []netip.Addr {
	mapped := [16]byte{10: 0xff, 11: 0xff}
	translated := [16]byte{1: 0x64, 2: 0xff, 3: 0x9b}
	copy(mapped[12:], x[:])
	copy(translated[12:], x[:])
	return []netip.Addr{netip.AddrFrom4(x), netip.AddrFrom16(mapped), netip.AddrFrom16(translated)}
}

func sameVerdict(g Guard, x [4]byte) bool {
	all := wrappings(x)
	verdict := g.Allowed(all[0])
	return g.Allowed(all[1]) == verdict && g.Allowed(all[2]) == verdict
}

func TestAnIPv4AddressHasOneVerdictHoweverItIsWrapped(t *testing.T) {
	t.Parallel()
	guards := []Guard{{}, NewGuard(prefixes("10.0.0.0/9", "::/0"), false), NewGuard(prefixes("::ffff:0:0/96"), false)}
	for _, g := range guards {
		require.NoError(t, quick.Check(func(x [4]byte) bool { return sameVerdict(g, x) }, &quick.Config{MaxCount: 20_000}))
		for _, n := range neighbours[:16] { // random addresses seldom hit an edge
			for _, text := range []string{n.first, n.last} {
				require.True(t, sameVerdict(g, netip.MustParseAddr(text).As4()), text)
			}
		}
	}
}

// FuzzVerdict searches for a wrapping that changes the verdict on an IPv4 address, and for an
// allowed prefix that doesn't allow its own addresses.
func FuzzVerdict(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1}, []byte{10, 0, 0, 0}, 8)
	f.Add([]byte{168, 63, 129, 16}, []byte{168, 63, 129, 16}, 32)
	f.Fuzz(func(t *testing.T, x, network []byte, bits int) {
		if len(x) != 4 || len(network) != 4 || bits < 0 || bits > 32 {
			return
		}
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte(network)), bits)
		g := NewGuard([]netip.Prefix{prefix}, false)
		require.True(t, sameVerdict(g, [4]byte(x)))
		require.True(t, g.Allowed(prefix.Addr()))
		if !prefix.Contains(netip.AddrFrom4([4]byte(x))) {
			require.Equal(t, Guard{}.Allowed(netip.AddrFrom4([4]byte(x))), g.Allowed(netip.AddrFrom4([4]byte(x))))
		}
	})
}
