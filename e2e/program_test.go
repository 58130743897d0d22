package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
)

// program is `earshot` with the settings of one deployment. Its processes start and stop, but the
// database, the address and the key stay the same.
type program struct {
	t     *testing.T
	env   []string
	url   string
	key   string
	board string
	// client is an HTTP client that can reach the url.
	client *http.Client
}

// organized is a database with an organization, and its key. The two commands that make them take longer than a copy.
var organized struct {
	sync.Once
	database, key string
}

// newProgram prepares a deployment with its first organization. Later settings win.
func newProgram(t *testing.T, settings ...string) *program {
	t.Helper()
	organized.Do(func() {
		database := testkit.Database(t)
		organized.key = newProgramOn(t, database).key
		organized.database = database
	})
	require.NotEmpty(t, organized.database, "the first test could not make an organization")
	p := configured(t, testkit.Copy(t, organized.database), settings...)
	p.key = organized.key
	return p
}

// newProgramOn is newProgram on a database without an organization.
func newProgramOn(t *testing.T, database string, settings ...string) *program {
	t.Helper()
	p := configured(t, database, settings...)
	var org, made map[string]any
	p.json(&org, "org", "create", "Acme", "--json")
	p.json(&made, "key", "create", "--json")
	p.key, _ = made["key"].(string)
	return p
}

// configured is newProgramOn without an organization.
func configured(t *testing.T, database string, settings ...string) *program {
	t.Helper()
	port, err := devstack.FreePort()
	require.NoError(t, err)
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	return &program{t: t, url: fmt.Sprintf("http://127.0.0.1:%d", port), client: http.DefaultClient, env: append(append(cleanEnviron(),
		"DATABASE_URL="+database,
		fmt.Sprintf("EARSHOT_LISTEN=127.0.0.1:%d", port),
		"EARSHOT_SECRET_KEYS=test:"+key, "EARSHOT_EMAIL_HASH_KEY="+key,
		"EARSHOT_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8", "EARSHOT_WEBHOOK_ALLOW_HTTP=true",
		"EARSHOT_RATE_LIMIT=100000", "EARSHOT_DATABASE_MAX_CONNS=8", "EARSHOT_DRAIN_DELAY=0s",
	), settings...)}
}

// temporalSettings returns the settings of a new namespace.
func temporalSettings(t *testing.T) []string {
	t.Helper()
	return settingsOf(testkit.NewNamespace(t))
}

// settingsOf returns the settings of a namespace.
func settingsOf(n client.Options) []string {
	return []string{"TEMPORAL_ADDRESS=" + n.HostPort, "TEMPORAL_NAMESPACE=" + n.Namespace}
}

// command runs a command to its end.
func (p *program) command(args ...string) (output string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, earshot(), args...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// json runs a command that prints JSON, with its progress on stderr.
func (p *program) json(into any, args ...string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, earshot(), args...)
	var progress bytes.Buffer
	cmd.Env, cmd.Stderr = p.env, &progress
	out, err := cmd.Output()
	require.NoError(p.t, err, "%s", &progress)
	require.NoError(p.t, json.Unmarshal(out, into), "%s", out)
}

// process is one run of `earshot serve` or `earshot worker`.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{}
	log   *testkit.Logs
}

// launch starts `earshot serve` without waiting until it is ready. The given settings win.
func (p *program) launch(settings ...string) *process {
	p.t.Helper()
	return p.start([]string{"serve"}, settings...)
}

// start starts a process. The given settings win.
func (p *program) start(args []string, settings ...string) *process {
	p.t.Helper()
	return p.run(exec.Command(earshot(), args...), settings...)
}

// run is like start, for a command that executes the program.
func (p *program) run(cmd *exec.Cmd, settings ...string) *process {
	p.t.Helper()
	s := &process{t: p.t, cmd: cmd, ended: make(chan struct{}), log: testkit.NewLogs()}
	s.cmd.Env = append(append([]string{}, p.env...), settings...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	require.NoError(p.t, s.cmd.Start())
	go func() { _ = s.cmd.Wait(); close(s.ended) }()
	p.t.Cleanup(func() {
		s.signal(os.Kill)
		if p.t.Failed() {
			p.t.Logf("process %d said:\n%s", s.cmd.Process.Pid, s.log)
		}
	})
	return s
}

// serve starts a process and waits until it is ready.
func (p *program) serve(settings ...string) *process {
	p.t.Helper()
	s := p.launch(settings...)
	p.awaitStatus("/readyz", http.StatusOK)
	return s
}

// serveAlone starts the API without a worker and waits until it is ready.
func (p *program) serveAlone(settings ...string) *process {
	p.t.Helper()
	s := p.start([]string{"serve", "--no-worker"}, settings...)
	p.awaitStatus("/readyz", http.StatusOK)
	return s
}

// worker starts `earshot worker` and waits until it accepts work.
func (p *program) worker(settings ...string) *process {
	p.t.Helper()
	s := p.start([]string{"worker"}, settings...)
	require.Eventually(p.t, func() bool { return strings.Contains(s.log.String(), `"worker runs"`) }, waitLimit, pollInterval)
	return s
}

func (p *program) awaitStatus(path string, status int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		answer, err := p.client.Get(p.url + path)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == status
	}, waitLimit, pollInterval, "%s never answered %d", path, status)
}

// signal sends a signal and waits for the end. The exit code is -1 after a kill.
func (s *process) signal(which os.Signal) (exitCode int) {
	_ = s.cmd.Process.Signal(which) // it may have ended
	<-s.ended
	return s.cmd.ProcessState.ExitCode()
}

func (s *process) kill() { s.signal(syscall.SIGKILL) }

// send makes a request with the key; body may be nil.
func (p *program) send(method, path string, body any) (status int, data map[string]any) {
	p.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(p.t, err)
	r, err := http.NewRequest(method, p.url+path, bytes.NewReader(text))
	require.NoError(p.t, err)
	r.Header.Set("Authorization", "Bearer "+p.key)
	answer, err := p.client.Do(r)
	if err != nil {
		return 0, nil // the process was killed meanwhile
	}
	defer func() { _ = answer.Body.Close() }()
	var envelope struct{ Data map[string]any }
	_ = json.NewDecoder(answer.Body).Decode(&envelope)
	return answer.StatusCode, envelope.Data
}

// first returns the first resource of a list, or nil if it is empty.
func (p *program) first(path string) map[string]any {
	p.t.Helper()
	r, err := http.NewRequest(http.MethodGet, p.url+path, nil)
	require.NoError(p.t, err)
	r.Header.Set("Authorization", "Bearer "+p.key)
	answer, err := p.client.Do(r)
	require.NoError(p.t, err)
	defer func() { _ = answer.Body.Close() }()
	var page struct{ Data []map[string]any }
	require.NoError(p.t, json.NewDecoder(answer.Body).Decode(&page))
	if len(page.Data) == 0 {
		return nil
	}
	return page.Data[0]
}

// must is send for a request that must succeed. It returns the id.
func (p *program) must(method, path string, body any) string {
	p.t.Helper()
	status, data := p.send(method, path, body)
	require.Contains(p.t, []int{http.StatusOK, http.StatusCreated, http.StatusAccepted}, status)
	return fmt.Sprint(data["id"])
}

// subscribe makes a board and a webhook for its posts on the receiver.
func (p *program) subscribe(r *testkit.Receiver) {
	p.t.Helper()
	p.board = p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas"})
	_, made := p.send(http.MethodPost, "/v1/webhooks", map[string]any{"url": r.URL, "events": []string{"post.created"}})
	r.Verify(fmt.Sprint(made["secret"]))
}

// post makes an event and returns the post's id, or "" if it wasn't acknowledged.
func (p *program) post() string { return p.postOf("Dark mode") }

// postOf is post with a title. With thousands of equal titles, the search for a free slug is slow.
func (p *program) postOf(title string) string {
	status, data := p.send(http.MethodPost, "/v1/boards/"+p.board+"/posts", map[string]any{"title": title})
	if status != http.StatusCreated {
		return ""
	}
	return fmt.Sprint(data["id"])
}
