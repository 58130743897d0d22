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
	// temporalReady is about twenty times the duration of a start on two idle cores.
	temporalReady = 60 * time.Second
	// temporalGrace allows for an orderly stop, which takes about 3 s. Of these, 2 s are fixed
	// waits of the server.
	temporalGrace = 15 * time.Second
	// Headless as TemporalOptions.UIPort disables the web UI.
	Headless = -1
	// defaultNamespace always exists on a dev server.
	defaultNamespace = "default"
)

// dynamicConfig makes the dev server prompt and fair. The cost doesn't matter for one host with a
// few namespaces.
var dynamicConfig = []string{
	// By default the server delays timers by up to a second to fire them together. So a timer of a
	// millisecond takes one second, and each retry up to one second more.
	`history.timerProcessorMaxTimeShift="1ms"`,
	// The system workers that run schedules in a new namespace start at the next refresh, by
	// default up to 2 s later.
	`system.namespaceCacheRefreshInterval="200ms"`,
	// Organizations share task queues fairly, as they should in production.
	`matching.enableFairness=true`,
	// By default the state of the last 128,000 workflows stays in memory for an hour. Each garbage
	// collection scans it, with both processors of a small machine for a third of a second. A limit
	// of 2,000 exceeds the number of workflows that are open here.
	`history.hostLevelCacheMaxSize=2000`,
}

// cachedAttributes makes the server read search attributes from memory, as in production. New
// attributes are available 200 ms later. By default the dev server reads them from the database for
// each list and treats every error as a missing namespace. SQLite has one connection, and a request
// that a browser cancels interrupts other reads on it for up to 1.5 s. The web UI then showed
// "Namespace default is not found".
const cachedAttributes = `system.forceSearchAttributesCacheRefreshOnRead=false`

// sqlitePragmas let the database file lose the last moments in a power failure, but not when the
// server is killed. Waiting for the disk at each step of a workflow would make a delivery a hundred
// times slower.
var sqlitePragmas = []string{"journal_mode=WAL", "synchronous=OFF"}

// TemporalOptions configures a dev server.
type TemporalOptions struct {
	// Dir contains the log and the database file. It is created if necessary. Two running programs
	// can't share one.
	Dir string
	// DatabaseFile keeps workflows over a restart. Without it they are only in memory.
	DatabaseFile bool
	// Port and UIPort are the preferred ports. If one is 0 or taken, a free port is chosen. UIPort
	// may be Headless.
	Port, UIPort int
	// Binary is the path of a temporal CLI, see TemporalBinary.
	Binary string
	// Namespaces are created at the start, in addition to "default".
	Namespaces []string
	// ExtraArgs follow our arguments on the command line, so they take precedence. Relative paths
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
	tls     *tls.Config // nil without TLS
}

// StartTemporal starts the server. It returns when all of its namespaces accept workflows and the
// web UI answers. Ctx bounds only the start. The error quotes the end of the log.
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
		// The server also has internal listeners on ports that can't be chosen. Another start uses
		// other ports.
		if try == startTries || !t.process.logSays("address already in use") {
			return nil, errors.Wrapf(err, "start Temporal (end of %s follows)\n%s", t.Log(), Tail(t.Log(), failureLines))
		}
	}
}

// startTemporal tries once. On an error it also returns a Temporal if the process was started,
// because its log contains the cause.
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
		_ = t.Stop(ctx) // the error of the start is more useful
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
		// Collect garbage when the heap has grown fivefold. The heap is small, and a collection
		// takes processor time from the services on the same machine. Without a file the heap is
		// large: the namespaces of a test run would take 5 GB.
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

// args sets every port that can be set. By default the server takes ports from the ephemeral range.
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

// temporalEnv removes variables that would affect the CLI from the caller's environment: TEMPORAL_…
// variables and the settings in the user's home.
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

// Log returns the path of the server's log. The previous run's log is beside it with the suffix
// ".old".
func (t *Temporal) Log() string { return t.process.log }

// Done returns a channel that is closed when the server has ended for any reason.
func (t *Temporal) Done() <-chan struct{} { return t.process.done }

// Stop ends the server and waits for it. A server with a database file gets 15 s to stop, or until
// ctx ends. After that Stop kills it and returns an error. A server without a file has nothing to
// save, so Stop kills it immediately. Stopping twice is allowed.
func (t *Temporal) Stop(ctx context.Context) error {
	if !t.durable {
		return t.process.stop(ctx, killWait, syscall.SIGKILL)
	}
	return t.process.stop(ctx, temporalGrace, syscall.SIGINT)
}

// Used returns the processor time of a server that has ended.
func (t *Temporal) Used() time.Duration { return t.process.used() }

// Kill ends the server like kill -9 and waits for it.
func (t *Temporal) Kill() { t.process.kill() }

// client returns a client without a log.
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

// namespaceReady describes a workflow that doesn't exist. The right answer requires that the
// frontend has the namespace and that the history service owns the shard.
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

// uiReady requests the data of the web UI's first page. The UI connects to the frontend before the
// frontend listens, and retries later.
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
