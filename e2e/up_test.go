package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

// result is the output of `up --detach --json` and `down --json`.
type result struct {
	Status, BaseURL, EnvFile string
	PID                      int
}

// TestTheStackOfADeveloper is one story, because each chapter needs the state that the previous one
// left.
func TestTheStackOfADeveloper(t *testing.T) {
	tier.Slow(t, "starts the whole stack several times")
	t.Parallel()
	s := newStack(t, "EARSHOT_PROFILES=true")

	first := s.mustRun(earshot(), "up", "--detach")
	key := s.sourced("EARSHOT_API_KEY")
	t.Run("the first up tells the key and where everything is", func(t *testing.T) {
		for _, part := range []string{"✓ Postgres", "✓ API and worker", s.sourced("EARSHOT_BASE_URL") + "/v1/docs", s.sourced("TEMPORAL_UI_URL"), key} {
			require.Contains(t, first, part)
		}
	})
	t.Run("dev.env is for its owner and holds addresses and keys", func(t *testing.T) {
		info, err := os.Stat(s.file("dev.env"))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
		require.Regexp(t, `^esk_\w{40}$`, key)
		require.Regexp(t, `^esk_\w{40}$`, s.sourced("EARSHOT_READ_API_KEY"))
		require.Regexp(t, `^postgres://.*/earshot`, s.sourced("DATABASE_URL"))
		require.Regexp(t, `^127\.0\.0\.1:\d+$`, s.sourced("TEMPORAL_ADDRESS"))
	})
	t.Run("e-mails are written into a mailbox and not sent", func(t *testing.T) {
		require.Regexp(t, `E-mail +\S+/mail  \(written there, not sent\)`, first)
		require.Contains(t, s.read("earshot.log"), `"EARSHOT_MAIL_DIR":"`+s.file("mail")+`"`)
	})
	t.Run("the printed lines work when they are pasted", func(t *testing.T) {
		require.Contains(t, s.paste(first), `"name":"Development"`)
		require.Equal(t, []string{"Feature requests"}, s.boards())
	})
	t.Run("metrics are where it says, and profiles beside them", func(t *testing.T) {
		metrics := s.sourced("EARSHOT_METRICS_URL")
		require.Contains(t, first, metrics)
		for _, path := range []string{"/metrics", "/debug/pprof/heap"} {
			s.isThere(strings.TrimSuffix(metrics, "/metrics") + path)
		}
	})
	t.Run("a second up says that it runs already", func(t *testing.T) {
		require.Contains(t, s.mustRun(earshot(), "up", "--detach"), "runs already: "+s.sourced("EARSHOT_BASE_URL"))
		out, code := s.run(earshot(), "up")
		require.Equal(t, 1, code)
		require.Contains(t, out, "this stack runs already (process ")
	})
	t.Run("down stops it, and again has nothing to stop", func(t *testing.T) {
		require.Contains(t, s.mustRun(earshot(), "down"), "Down after ")
		require.Contains(t, s.mustRun(earshot(), "down"), "Nothing is running")
	})
	t.Run("the next up has the same data and key, and lines that work, and Ctrl-C stops it in order", func(t *testing.T) {
		next := s.upInForeground()
		out := next.out.String()
		require.NotContains(t, out, key)
		require.Equal(t, key, s.sourced("EARSHOT_API_KEY"))
		require.Contains(t, s.paste(out), `"name":"Development"`)
		require.Len(t, s.boards(), 2)
		next.interrupt(t)
	})
	t.Run("after kill -9 the next up has the same data", func(t *testing.T) {
		require.Equal(t, "started", s.result("up", "--detach", "--json").Status)
		running := s.result("up", "--detach", "--json")
		require.Equal(t, "already_running", running.Status)
		require.NoError(t, syscall.Kill(running.PID, syscall.SIGKILL))
		require.Eventually(t, func() bool { return s.result("down", "--json").Status == "not_running" }, waitLimit, pollInterval)
		require.Equal(t, "started", s.result("up", "--detach", "--json").Status)
		require.Equal(t, key, s.sourced("EARSHOT_API_KEY"))
		require.Len(t, s.boards(), 2)
	})
	t.Run("a key that is no longer valid is replaced, and that is said", func(t *testing.T) {
		require.Equal(t, "stopped", s.result("down", "--json").Status)
		spoilt := strings.ReplaceAll(s.read("dev.env"), key, "esk_revoked")
		require.NoError(t, os.WriteFile(s.file("dev.env"), []byte(spoilt), 0o600))
		out := s.mustRun(earshot(), "up", "--detach")
		require.Contains(t, out, "EARSHOT_API_KEY in dev.env is not valid; made a new read:write key")
		require.Contains(t, out, s.sourced("EARSHOT_API_KEY"))
		require.Len(t, s.boards(), 2)
	})
	t.Run("reset stops it and removes the data", s.reset)
}

func (s *stack) reset(t *testing.T) {
	out, code := s.run(earshot(), "reset")
	require.Equal(t, 1, code)
	require.Contains(t, out, "use --yes")
	require.Contains(t, s.mustRun(earshot(), "reset", "--yes"), "Removed the data")
	for _, name := range []string{"dev.env", "secrets.env", "postgres", "temporal"} {
		require.NoFileExists(t, s.file(name))
		require.NoDirExists(t, s.file(name))
	}
}

// result runs a command that prints JSON and decodes its output.
func (s *stack) result(args ...string) (r result) {
	s.t.Helper()
	out, err := s.command(s.t.Context(), earshot(), args...).Output()
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(out, &r))
	return r
}

// paste runs the indented lines below "Try it:", as a person does.
func (s *stack) paste(banner string) string {
	s.t.Helper()
	_, rest, found := strings.Cut(banner, "Try it:\n\n")
	require.True(s.t, found, banner)
	lines, _, _ := strings.Cut(rest, "\n\n")
	require.Contains(s.t, lines, "curl ")
	return s.mustRun("bash", "-e", "-c", strings.ReplaceAll(lines, "curl ", "curl --fail-with-body "))
}

// foreground is a running `up` in the foreground.
type foreground struct {
	cmd *exec.Cmd
	out *testkit.Logs
}

// upInForeground starts `up` and returns when everything answers.
func (s *stack) upInForeground() *foreground {
	s.t.Helper()
	f := &foreground{out: testkit.NewLogs()}
	f.cmd = s.command(s.t.Context(), earshot(), "up")
	f.cmd.Stdout, f.cmd.Stderr = f.out, f.out
	require.NoError(s.t, f.cmd.Start())
	require.Eventually(s.t, func() bool { return strings.Contains(f.out.String(), "Ctrl-C stops everything") }, commandTimeout, pollInterval,
		"the stack doesn't come up")
	return f
}

// interrupt presses Ctrl-C, which stops the parts in the order of their dependencies.
func (f *foreground) interrupt(t *testing.T) {
	t.Helper()
	require.NoError(t, f.cmd.Process.Signal(os.Interrupt))
	require.NoError(t, f.cmd.Wait())
	require.Regexp(t, `(?s)Stopping.*API and worker +stopped.*Temporal +stopped.*Postgres +stopped`, f.out.String())
}

func TestAServerThatDiesTakesTheRestWithIt(t *testing.T) {
	tier.Slow(t, "starts the whole stack")
	t.Parallel()
	s := newStack(t)
	f := s.upInForeground()
	var pid int
	_, err := fmt.Sscan(s.read("temporal/temporal.pid"), &pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Error(t, f.cmd.Wait())
	require.Equal(t, 1, f.cmd.ProcessState.ExitCode())
	require.Regexp(t, `(?s)Temporal ended by itself.*API and worker +stopped.*Postgres +stopped.*end of .*temporal\.log`, f.out.String())
}

func TestAPortThatWasChosenAndIsTakenIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	s := newStack(t, fmt.Sprintf("EARSHOT_PORT=%d", port))
	for _, args := range [][]string{{"up"}, {"up", "--detach"}} {
		out, code := s.run(earshot(), args...)
		require.Equal(t, 1, code)
		require.Contains(t, out, fmt.Sprintf("port %d (EARSHOT_PORT) is taken", port))
	}
}

func TestWrongSettingsAreToldBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	s := newStack(t, "EARSHOT_LOG_FORMAT=xml", "EARSHOT_RATE_LIMIT=many")
	out, code := s.run(earshot(), "up")
	require.Equal(t, 1, code)
	require.Contains(t, out, "EARSHOT_LOG_FORMAT: must be json or text")
	require.Contains(t, out, "EARSHOT_RATE_LIMIT: ")
	require.NoDirExists(t, s.file("postgres"))
}
