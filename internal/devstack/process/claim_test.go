package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALeftoverServerIsStoppedByTheNextOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	leftover := exec.Command("sleep", "1000")
	require.NoError(t, leftover.Start())
	// The kernel shows the arguments of a program only a moment after its start.
	require.Eventually(t, func() bool { return runs(leftover.Process.Pid, "sleep 1000") }, leftoverGrace, readyPause)
	first, err := TakeClaim(t.Context(), dir, "server", syscall.SIGTERM, nil)
	require.NoError(t, err)
	require.NoError(t, first.record(leftover.Process.Pid, leftover.Args))
	first.Release()

	second, err := TakeClaim(t.Context(), dir, "server", syscall.SIGTERM, t.Logf)
	require.NoError(t, err)
	defer second.Release()
	require.ErrorContains(t, leftover.Wait(), "terminated")
	require.NoFileExists(t, second.pidFile)
}

func TestAStrangerWithTheRecordedNumberIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	record := fmt.Sprintf("%d\nsome server that ended long ago\n", os.Getpid())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "server.pid"), []byte(record), 0o644))
	claimed, err := TakeClaim(t.Context(), dir, "server", syscall.SIGKILL, nil)
	require.NoError(t, err)
	claimed.Release()
}
