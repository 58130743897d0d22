// Package e2e tests the built program from the outside. It runs the program as a person does, in a
// temporary directory and on free ports.
package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

const (
	// commandTimeout bounds every command. The longest one runs every measurement once while other
	// tests keep both cores busy.
	commandTimeout = 6 * time.Minute
	// waitLimit bounds waits for things that are immediate on an idle machine.
	waitLimit = 30 * time.Second
	// pollInterval is the interval between checks of a condition.
	pollInterval = 50 * time.Millisecond
)

// httpClient makes the requests of the tests. An answer that never comes fails its test, and not the
// whole package after 20 minutes.
var httpClient = &http.Client{Timeout: waitLimit}

// repository is the root directory, with tools/go.mod and temporal-dev.yaml.
var repository, _ = filepath.Abs("..")

// built is the path at which TestMain builds the program.
var built string

// earshot returns the path of the built program.
func earshot() string {
	testkit.DependOnSources()
	return built
}

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "earshot-e2e-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built = filepath.Join(dir, "earshot")
	// Without tables for debuggers the link takes a quarter less.
	build := exec.Command("go", "build", "-ldflags=-w", "-o", built, "./cmd/earshot")
	build.Dir, build.Stdout, build.Stderr = repository, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return 0, fmt.Errorf("build the program: %w", err)
	}
	return testkit.Run(m), nil
}

// stack is a state directory with the environment that its commands run in.
type stack struct {
	t   *testing.T
	dir string
	env []string
}

// newStack makes a directory. The test's cleanup ends its stack.
func newStack(t *testing.T, env ...string) *stack {
	t.Helper()
	dir := t.TempDir()
	// The user postgres needs access, and the parent directory is closed to other users.
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	s := &stack{t: t, dir: dir, env: append(cleanEnviron(),
		"EARSHOT_DIR="+dir, "EARSHOT_BIN="+earshot(),
		"EARSHOT_PORT=0", "EARSHOT_POSTGRES_PORT=0", "EARSHOT_METRICS_PORT=0",
		"EARSHOT_TEMPORAL_PORT=0", "EARSHOT_TEMPORAL_UI_PORT=0",
	)}
	s.env = append(s.env, env...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the service's log, what isn't routine:\n%s", troubles(filepath.Join(dir, "earshot.log")))
		}
		out, err := s.command(context.Background(), earshot(), "reset", "--yes").CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	return s
}

// troubles returns the lines of a log except those of level INFO. A load writes thousands of these,
// and they would hide the cause of a failure.
func troubles(file string) string {
	log, _ := os.ReadFile(file) // The log may not exist yet.
	var lines strings.Builder
	for line := range strings.Lines(string(log)) {
		if !strings.Contains(line, `"level":"INFO"`) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// cleanEnviron returns the test's environment without settings of another stack.
func cleanEnviron() (env []string) {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "EARSHOT_") && !strings.HasPrefix(name, "TEMPORAL_") && name != "DATABASE_URL" {
			env = append(env, pair)
		}
	}
	return env
}

func (s *stack) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = repository, s.env
	return cmd
}

// run runs a command to its end and returns its output and exit code.
func (s *stack) run(path string, args ...string) (output string, code int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), commandTimeout)
	defer cancel()
	cmd := s.command(ctx, path, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(s.t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// mustRun is run for a command that must succeed.
func (s *stack) mustRun(path string, args ...string) string {
	s.t.Helper()
	out, code := s.run(path, args...)
	require.Zero(s.t, code, "%s %v:\n%s", filepath.Base(path), args, out)
	return out
}

func (s *stack) file(name string) string { return filepath.Join(s.dir, name) }

func (s *stack) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(s.file(name))
	require.NoError(s.t, err)
	return string(text)
}

// sourced returns the value of a variable in a shell that has sourced dev.env.
func (s *stack) sourced(variable string) string {
	s.t.Helper()
	out := s.mustRun("bash", "-c", `set -a; . "$1"; printenv "$2"`, "bash", s.file("dev.env"), variable)
	return strings.TrimSuffix(out, "\n")
}

// isThere requests a page that needs no key.
func (s *stack) isThere(url string) {
	s.t.Helper()
	answer, err := httpClient.Get(url)
	require.NoError(s.t, err)
	require.NoError(s.t, answer.Body.Close())
	require.Equal(s.t, http.StatusOK, answer.StatusCode, url)
}

// get requests a path of the API with the key of dev.env and decodes the answer.
func (s *stack) get(path string, into any) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.sourced("EARSHOT_BASE_URL")+path, nil)
	require.NoError(s.t, err)
	request.Header.Set("Authorization", "Bearer "+s.sourced("EARSHOT_API_KEY"))
	response, err := httpClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	require.Equal(s.t, http.StatusOK, response.StatusCode)
	require.NoError(s.t, json.NewDecoder(response.Body).Decode(into))
}

// boards returns the names of all boards.
func (s *stack) boards() (names []string) {
	s.t.Helper()
	var page struct{ Data []struct{ Name string } }
	s.get("/v1/boards", &page)
	for _, b := range page.Data {
		names = append(names, b.Name)
	}
	return names
}
