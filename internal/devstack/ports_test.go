package devstack

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFreePortIsKept(t *testing.T) {
	t.Parallel()
	free, _, err := FreePort(0)
	require.NoError(t, err)
	port, moved, err := FreePort(free)
	require.NoError(t, err)
	require.Equal(t, free, port)
	require.False(t, moved)
}

func TestATakenPortMovesBelowTheEphemeralRange(t *testing.T) {
	t.Parallel()
	for _, address := range []string{hostPort(0), "0.0.0.0:0"} {
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err)
		defer listener.Close()
		port, moved, err := FreePort(listener.Addr().(*net.TCPAddr).Port)
		require.NoError(t, err)
		require.True(t, moved)
		require.GreaterOrEqual(t, port, LowestPort)
		require.Less(t, port, EphemeralPorts)
	}
}

func TestNoPortIsHandedOutTwice(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 200 {
		port, moved, err := FreePort(0)
		require.NoError(t, err)
		require.False(t, moved)
		require.False(t, seen[port], "port %d was handed out before", port)
		seen[port] = true
	}
}
