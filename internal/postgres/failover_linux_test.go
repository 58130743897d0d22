package postgres_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"earshot/internal/postgres"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// The test can't cut the power of a machine, so it checks the socket options.
func TestTheSystemEndsAConnectionToAMachineThatHasGoneSilentWithinTenSeconds(t *testing.T) {
	t.Parallel()
	var seen fixture.Connections
	s, err := postgres.Open(postgres.Options{URL: testkit.Database(t), Serving: true, Tracer: &seen})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	_, err = s.Client().Organization.Query().Count(fixture.AllRows(t, s))
	require.NoError(t, err)
	socket, ok := seen.Last().Conn().(*net.TCPConn)
	require.True(t, ok)
	raw, err := socket.SyscallConn()
	require.NoError(t, err)
	for option, wanted := range map[int]int{unix.TCP_USER_TIMEOUT: 10_000, unix.TCP_KEEPIDLE: 5, unix.TCP_KEEPINTVL: 5} {
		var got int
		require.NoError(t, raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option) }))
		require.NoError(t, err)
		require.Equal(t, wanted, got)
	}
}
