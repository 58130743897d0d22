package devstack

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"earshot/internal/devstack/process"
	"earshot/internal/testkit/tier"
)

// endTime bounds the orderly end of both servers, which takes about 3 s.
const endTime = 20 * time.Second

func TestTheServersEndWhenTheirProgramIsKilled(t *testing.T) {
	tier.Slow(t, "starts both servers and kills their program")
	t.Parallel()
	dir := reachableDir(t)
	self, err := os.Executable()
	require.NoError(t, err)
	program := exec.Command(self)
	program.Env = append(os.Environ(), parentDir+"="+dir)
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	t.Cleanup(func() { _ = program.Process.Kill() })
	var state parentState
	require.NoError(t, json.NewDecoder(out).Decode(&state))
	conn, err := pgx.Connect(t.Context(), state.URL)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), noteDown)
	require.NoError(t, err)
	postgres, temporal := watch(t, state.Postgres), watch(t, state.Temporal)

	require.NoError(t, program.Process.Kill())
	require.ErrorContains(t, program.Wait(), "killed")
	requireEnd(t, "Postgres", postgres)
	requireEnd(t, "Temporal", temporal)
	require.NoError(t, conn.Close(t.Context()))
	require.Contains(t, process.Tail(filepath.Join(dir, "postgres.log")), "fast shutdown request", "in order, not by a crash")

	again := startPostgresIn(t, PostgresOptions{Dir: dir, Durable: true})
	require.Equal(t, "kept", readNote(t, again.URL("postgres")))
	startTemporalIn(t, TemporalOptions{Dir: dir, DatabaseFile: true, UIPort: Headless})
}

// watch returns a descriptor that becomes readable when the process has ended. It also works for
// processes that aren't our children.
func watch(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func requireEnd(t *testing.T, name string, fd int) {
	t.Helper()
	deadline := time.Now().Add(endTime)
	for {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(deadline).Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 1, ready, "%s is still running", name)
		return
	}
}
