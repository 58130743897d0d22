package devstack

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

const (
	temporalName = "temporal"
	// temporalReady is some twenty times what a start takes on two idle cores.
	temporalReady = 60 * time.Second
	// temporalGrace: an orderly stop takes some 3 s, of which 2 s are fixed
	// waits of the server.
	temporalGrace = 15 * time.Second
	// Headless as TemporalOptions.UIPort means no web UI.
	Headless = -1
	// defaultNamespace is made by the dev server whatever else it is told.
	defaultNamespace = "default"
)

// dynamicConfig makes the dev server prompt and fair, at a cost that doesn't matter for
// one host with a handful of namespaces.
var dynamicConfig = []string{
	// By default timers that are due within a second wait for each other, so a
	// timer of a millisecond takes one second, and each retry up to one more.
	`history.timerProcessorMaxTimeShift="1ms"`,
	// The workers that run schedules in a namespace that is registered later
	// start at the next refresh, by default up to 2 s later.
	`system.namespaceCacheRefreshInterval="200ms"`,
	// Queues are shared between organizations, as they should be in production.
	`matching.enableFairness=true`,
	// By default what is known of the last 128,000 runs stays in memory for an hour, and
	// each collection of garbage looks through it, with both processors of a small
	// machine for a third of a second. 2,000 are more than are open at once here.
	`history.hostLevelCacheMaxSize=2000`,
}

// cachedAttributes has search attributes read from memory, as in production: those that
// are registered are known 200 ms later. The dev server reads them from the database for
// each list, and takes whatever goes wrong there for a namespace that isn't there. SQLite
// has one connection, and a request that a browser gives up interrupts what others read
// on it, for up to a second and a half: the web UI then said "Namespace default is not
// found".
const cachedAttributes = `system.forceSearchAttributesCacheRefreshOnRead=false`

// sqlitePragmas let the database file lose its last moments when the machine
// loses power, not when the server is killed: waiting for the disk at each step
// of each workflow would make a delivery take a hundred times as long.
var sqlitePragmas = []string{"journal_mode=WAL", "synchronous=OFF"}

// TemporalOptions says where and how a dev server runs.
type TemporalOptions struct {
	// Dir holds the log and the database file: made if it isn't there. Two
	// running programs can't share one.
	Dir string
	// DatabaseFile keeps workflows over a restart; without it they live in
	// memory.
	DatabaseFile bool
	// Port and UIPort are the preferred ones; if one is 0 or taken, a free one
	// is chosen. UIPort may be Headless.
	Port, UIPort int
	// Binary is the path of a temporal CLI, see TemporalBinary.
	Binary string
	// Namespaces are made at the start, besides "default".
	Namespaces []string
	// ExtraArgs follow ours on the command line, so they win. Relative paths
	// are relative to the caller's directory.
	ExtraArgs []string
	Report    Report
}

// Temporal is a running dev server or temporal-server. It ends with this program.
type Temporal struct {
	process *child
	port    int
	uiPort  int
	durable bool
	tls     *tls.Config // nil: plain
}

// StartTemporal starts the server; it returns when workflows can be started in
// all of its namespaces and the web UI answers. Ctx bounds the start only. The
// error quotes the end of the log.
func StartTemporal(ctx context.Context, o TemporalOptions) (*Temporal, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, errors.Wrap(err, "find the directory")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, errors.Wrap(err, "make the directory")
	}
	o.Dir = dir
	for try := 1; ; try++ {
		t, err := startTemporal(ctx, o)
		if err == nil {
			return t, nil
		}
		if ctx.Err() != nil {
			return nil, errors.Wrap(ctx.Err(), "start Temporal")
		}
		if t == nil {
			return nil, errors.Wrap(err, "start Temporal")
		}
		// The server has internal listeners too, on ports that can't be
		// chosen; another start gets other ones.
		if try == startTries || !t.process.logSays("address already in use") {
			return nil, errors.Wrapf(err, "start Temporal (end of %s follows)\n%s", t.Log(), Tail(t.Log(), failureLines))
		}
	}
}

// startTemporal tries once. With an error it returns a Temporal too if it came
// as far as a process, whose log then holds the reason.
func startTemporal(ctx context.Context, o TemporalOptions) (*Temporal, error) {
	held, err := takeClaim(ctx, o.Dir, temporalName, syscall.SIGINT, o.Report)
	if err != nil {
		return nil, err
	}
	t, err := launchTemporal(o, held)
	if err != nil {
		held.release()
		return nil, err
	}
	if err := t.awaitReady(ctx, temporalReady, append([]string{defaultNamespace}, o.Namespaces...)); err != nil {
		_ = t.Stop(ctx) // the error of the start says more
		return t, err
	}
	return t, nil
}

func launchTemporal(o TemporalOptions, held *claim) (*Temporal, error) {
	t := &Temporal{durable: o.DatabaseFile, uiPort: Headless}
	var err error
	if t.port, err = choosePort(o.Port, "Temporal", o.Report); err != nil {
		return nil, err
	}
	if o.UIPort != Headless {
		if t.uiPort, err = choosePort(o.UIPort, "Temporal's web UI", o.Report); err != nil {
			return nil, err
		}
	}
	args, err := t.args(o)
	if err != nil {
		return nil, err
	}
	env := temporalEnv(o.Dir)
	if o.DatabaseFile {
		// Garbage is collected when the heap has grown fivefold: it is small, and a
		// collection takes the processors from the services beside it. Without a file it
		// isn't: a test run's namespaces would take 5 GB.
		env = append(env, "GOGC=400")
	}
	t.process, err = startChild(spec{
		name: temporalName,
		path: o.Binary,
		args: args,
		env:  env,
		log:  filepath.Join(o.Dir, temporalName+".log"),
		stop: syscall.SIGINT,
	}, held)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// args names every port that can be named: left alone, the server takes ports
// from the range of outgoing connections.
func (t *Temporal) args(o TemporalOptions) ([]string, error) {
	args := []string{
		"server", "start-dev",
		"--ip", loopback,
		"--port", strconv.Itoa(t.port),
		"--log-level", "warn",
	}
	for _, flag := range []string{"--http-port", "--metrics-port"} {
		port, err := choosePort(0, flag, o.Report)
		if err != nil {
			return nil, err
		}
		args = append(args, flag, strconv.Itoa(port))
	}
	if t.uiPort == Headless {
		args = append(args, "--headless")
	} else {
		args = append(args, "--ui-port", strconv.Itoa(t.uiPort))
	}
	if o.DatabaseFile {
		args = append(args, "--db-filename", filepath.Join(o.Dir, "temporal.db"))
		for _, pair := range sqlitePragmas {
			args = append(args, "--sqlite-pragma", pair)
		}
		args = append(args, "--dynamic-config-value", cachedAttributes)
	}
	for _, name := range o.Namespaces {
		args = append(args, "--namespace", name)
	}
	for _, pair := range dynamicConfig {
		args = append(args, "--dynamic-config-value", pair)
	}
	return append(args, o.ExtraArgs...), nil
}

// temporalEnv is the caller's environment without what the CLI would obey: its
// TEMPORAL_… variables and the settings in the person's home.
func temporalEnv(home string) []string {
	var env []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "TEMPORAL_") && name != "HOME" && name != "XDG_CONFIG_HOME" {
			env = append(env, pair)
		}
	}
	return append(env, "HOME="+home)
}

// Address returns host and port of the gRPC frontend, for client.Options.
func (t *Temporal) Address() string { return hostPort(t.port) }

// UIURL returns the address of the web UI, "" if headless.
func (t *Temporal) UIURL() string {
	if t.uiPort == Headless {
		return ""
	}
	return "http://" + hostPort(t.uiPort)
}

// Log returns the path of the server's log; the previous run's is beside it
// with ".old" at its end.
func (t *Temporal) Log() string { return t.process.log }

// Done is closed when the server has ended, for whatever reason.
func (t *Temporal) Done() <-chan struct{} { return t.process.done }

// Stop ends the server and waits for it. With a database file it is asked to
// stop and gets 15 s, or until ctx ends, before it is killed, which is an
// error; without one there is nothing to save and it is killed at once.
// Stopping twice is allowed.
func (t *Temporal) Stop(ctx context.Context) error {
	if !t.durable {
		return t.process.stop(ctx, killWait, syscall.SIGKILL)
	}
	return t.process.stop(ctx, temporalGrace, syscall.SIGINT)
}

// Used is the processor time of a server that has ended.
func (t *Temporal) Used() time.Duration { return t.process.used() }

// Kill ends the server as kill -9 does and waits for it.
func (t *Temporal) Kill() { t.process.kill() }

// client is one that says nothing.
func (t *Temporal) client() (client.Client, error) {
	c, err := client.NewLazyClient(client.Options{
		HostPort:          t.Address(),
		Logger:            log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{TLS: t.tls},
	})
	if err != nil {
		return nil, errors.Wrap(err, "make a client")
	}
	return c, nil
}

func (t *Temporal) awaitReady(ctx context.Context, limit time.Duration, namespaces []string) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	defer c.Close()
	return t.process.awaitReady(ctx, limit, func(ctx context.Context) error {
		if _, err := c.CheckHealth(ctx, nil); err != nil {
			return errors.Wrap(err, "check health")
		}
		for _, name := range namespaces {
			if err := namespaceReady(ctx, c.WorkflowService(), name); err != nil {
				return err
			}
			if err := t.uiReady(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// namespaceReady asks for a workflow that doesn't exist: only a server whose
// frontend knows the namespace and whose history service owns its shard can say
// so.
func namespaceReady(ctx context.Context, service workflowservice.WorkflowServiceClient, name string) error {
	_, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if err != nil {
		return errors.Wrapf(err, "describe namespace %s", name)
	}
	_, err = service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: name,
		Execution: &common.WorkflowExecution{WorkflowId: "devstack-ready"},
	})
	var absent *serviceerror.NotFound
	if errors.As(err, &absent) || err == nil {
		return nil
	}
	return errors.Wrapf(err, "ask for a workflow in namespace %s", name)
}

// uiReady asks the web UI for what its first page shows: it has a connection of its own to
// the frontend, which it makes before that listens and tries again later.
func (t *Temporal) uiReady(ctx context.Context, namespace string) error {
	if t.uiPort == Headless {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.UIURL()+"/api/v1/namespaces/"+namespace+"/workflow-count", nil)
	if err != nil {
		return errors.Wrap(err, "ask the web UI")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return errors.Wrap(err, "ask the web UI")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.Errorf("the web UI answers %s for namespace %s", response.Status, namespace)
	}
	return nil
}
