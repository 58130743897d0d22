package devstack

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFreePortIsKept(t *testing.T) {
	t.Parallel()
	free, err := FreePort()
	require.NoError(t, err)
	port, err := ChoosePort(free, "the test", nil)
	require.NoError(t, err)
	require.Equal(t, free, port)
}

func TestATakenPortMovesBelowTheEphemeralRange(t *testing.T) {
	t.Parallel()
	for _, address := range []string{hostPort(0), "0.0.0.0:0"} {
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err)
		defer listener.Close()
		taken := listener.Addr().(*net.TCPAddr).Port
		require.False(t, PortFree(taken))
		port, err := ChoosePort(taken, "the test", nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, port, LowestPort)
		require.Less(t, port, EphemeralPorts)
	}
}

func TestNoPortIsHandedOutTwice(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 200 {
		port, err := FreePort()
		require.NoError(t, err)
		require.False(t, seen[port], "port %d was handed out before", port)
		seen[port] = true
	}
}
