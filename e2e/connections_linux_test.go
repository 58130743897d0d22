package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"earshot/internal/testkit/tier"
)

// memory returns the present (VmRSS) or the peak (VmHWM) memory of a process, in MiB.
func (s *process) memory(which string) int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	require.NoError(s.t, err)
	_, rest, found := strings.Cut(string(text), which+":")
	require.True(s.t, found)
	var kib int
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(s.t, err)
	return kib / 1024
}

// crowd opens connections that send one request and stay open, as far as the program lets them. It
// calls look from time to time.
func (p *program) crowd(n int, look func()) {
	p.t.Helper()
	const ask = "GET /healthz HTTP/1.1\r\nHost: a.example\r\n\r\n"
	for i := range n {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://")) //nolint:noctx // to our own program
		require.NoError(p.t, err)
		p.t.Cleanup(func() { c.Close() })
		_, _ = io.WriteString(c, ask) // The program may have closed it already.
		if i%500 == 0 {
			look()
		}
	}
	look()
}

func (p *program) requireAnswers() {
	p.t.Helper()
	status, _ := p.send(http.MethodGet, "/v1/boards", nil)
	require.Equal(p.t, http.StatusOK, status)
	p.post()
}

func TestTenThousandIdleConnectionsTakeBoundedMemoryAndBlockNoOtherClient(t *testing.T) {
	tier.Slow(t, "10,000 connections")
	t.Parallel()
	const connections = 10_000
	var files unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
	if files.Cur < connections+1000 {
		t.Skip("the test itself may open", files.Cur, "files only")
	}
	p := newProgram(t, temporalSettings(t)...)
	s := p.serve()
	p.board = p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas"})
	p.requireAnswers()
	before := s.memory("VmRSS")
	p.crowd(connections, p.requireAnswers)
	during, most := s.memory("VmRSS"), s.memory("VmHWM")
	t.Logf("%d idle connections: %d MiB before, %d MiB with them, %d MiB at most", connections, before, during, most)
	require.Less(t, most-before, 100)
	p.requireAnswers()
	requireRuns(t, s)
}

func requireRuns(t *testing.T, s *process) {
	t.Helper()
	select {
	case <-s.ended:
		t.Fatal("the program ended")
	default:
	}
}

func TestAProgramThatMayOpenAThousandFilesLeavesItselfRoom(t *testing.T) {
	tier.Slow(t, "opens two thousand connections")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	s := p.run(exec.Command("bash", "-c", `ulimit -n 1024 && exec "$0" serve`, earshot()))
	p.awaitStatus("/readyz", http.StatusOK)
	p.board = p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas"})
	p.crowd(2000, p.requireAnswers)
	require.NotContains(t, s.log.String(), "too many open files")
	requireRuns(t, s)
}

// The limit sinks while the program runs, so fewer files are left than it planned with. It then
// fails to accept, and must close idle connections.
func TestAProgramThatHasNoFilesLeftLetsIdleConnectionsGo(t *testing.T) {
	tier.Slow(t, "uses up all files")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	s := p.serve()
	p.board = p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas"})
	limit := unix.Rlimit{Cur: 200, Max: 200}
	require.NoError(t, unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil))
	p.crowd(1000, func() {})
	p.requireAnswers()
	require.Contains(t, s.log.String(), "too many open files")
	requireRuns(t, s)
}
