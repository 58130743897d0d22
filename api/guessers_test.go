package api

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsRememberedOfGuessersIsBounded(t *testing.T) {
	t.Parallel()
	g := newRefusedKeys()
	first := g.bucket(networkOf(0))
	for i := range maxNetworks - 1 {
		g.bucket(networkOf(i + 1))
	}
	require.Same(t, first, g.bucket(networkOf(0)), "still there, and the latest now")
	second := g.bucket(networkOf(1))
	for i := range maxNetworks - 1 {
		g.bucket(networkOf(maxNetworks + i))
	}
	require.Same(t, second, g.bucket(networkOf(1)))
	require.NotSame(t, first, g.bucket(networkOf(0)))
	require.Len(t, g.by, maxNetworks)
	require.Equal(t, maxNetworks, g.recent.Len())
}

func networkOf(i int) netip.Prefix {
	return clientNetwork(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(i >> 16), byte(i >> 8), byte(i)}))
}
