package devstack

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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

	"earshot/internal/devstack/process"
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
	// Namespace always exists on a dev server.
	Namespace = "default"
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
	// Search attributes come from memory, as in production. New ones are available 200 ms later.
	// By default the dev server reads them from the database for each run that it lists, under one
	// lock and over SQLite's one connection. A list of 400 runs took up to 5 s while tests ran. In
	// the web UI, a request that the browser canceled interrupted such a read, and the page said
	// "Namespace default is not found".
	`system.forceSearchAttributesCacheRefreshOnRead=false`,
}

// inMemoryConfig makes a server without a file cheaper. Such a server starts empty. One with a file
// may have tasks in the other partitions, and nobody would read them.
var inMemoryConfig = []string{
	// By default a task queue has four partitions, which pass tasks and polls on to each other. A
	// tenth of the processor time of a test run went into that.
	`matching.numTaskqueueReadPartitions=1`,
	`matching.numTaskqueueWritePartitions=1`,
	// Nobody reads the metrics of such a server. Each second it reports the time series of every task
	// queue, and every test has its own queues.
	`metrics.breakdownByTaskQueue=false`,
}

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
	// ExtraArgs follow our arguments on the command line, so they take precedence. Relative paths
	// are relative to the caller's directory.
	ExtraArgs []string
	Report    Report
}

// Temporal is a running dev server. It ends with this program. Stop gives a server with a database
// file 15 s to end. It kills a server without a file, which has nothing to save.
type Temporal struct {
	*process.Process

	port   int
	uiPort int
}

// StartTemporal starts the server. It returns when its namespace "default" accepts workflows and the
// web UI answers. Ctx bounds only the start. The error quotes the end of the log.
func StartTemporal(ctx context.Context, o TemporalOptions) (*Temporal, error) {
	dir, err := makeDir(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	t := &Temporal{uiPort: Headless}
	server := process.Server{
		Name: temporalName, Dir: dir,
		// The server also has internal listeners on ports that can't be chosen. If one of them is
		// taken, another start uses other ports.
		Prepare: func(context.Context) (*exec.Cmd, error) { return t.prepare(o) },
		Ready:   t.ready, ReadyWithin: temporalReady,
		Signals: []syscall.Signal{syscall.SIGKILL}, Grace: temporalGrace,
		Report: o.Report,
	}
	if o.DatabaseFile {
		server.Signals = []syscall.Signal{syscall.SIGINT}
	}
	if t.Process, err = process.Start(ctx, server); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Temporal) prepare(o TemporalOptions) (_ *exec.Cmd, err error) {
	if t.port, err = ChoosePort(o.Port, "Temporal", o.Report); err != nil {
		return nil, err
	}
	if o.UIPort != Headless {
		if t.uiPort, err = ChoosePort(o.UIPort, "Temporal's web UI", o.Report); err != nil {
			return nil, err
		}
	}
	args, err := t.args(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(o.Binary, args...)
	cmd.Env = TemporalEnv(o.Dir)
	if o.DatabaseFile {
		// Collect garbage when the heap has grown fivefold. The heap is small, and a collection
		// takes processor time from the services on the same machine. Without a file the heap is
		// large: the namespaces of a test run would take 5 GB.
		cmd.Env = append(cmd.Env, "GOGC=400")
	} else {
		// Half of the processors are for the tests. SQLite has one connection, and threads that wait for
		// it took a sixth of the server's processor time.
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+strconv.Itoa(max(1, runtime.NumCPU()/2)))
	}
	return cmd, nil
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
		port, err := FreePort()
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
	config := dynamicConfig
	if o.DatabaseFile {
		args = append(args, "--db-filename", filepath.Join(o.Dir, "temporal.db"))
		for _, pair := range sqlitePragmas {
			args = append(args, "--sqlite-pragma", pair)
		}
	} else {
		config = slices.Concat(config, inMemoryConfig)
	}
	for _, pair := range config {
		args = append(args, "--dynamic-config-value", pair)
	}
	return append(args, o.ExtraArgs...), nil
}

// TemporalEnv returns the environment for one of Temporal's programs, with the given home. It lacks
// the caller's TEMPORAL_… variables and configuration, which would affect the program.
func TemporalEnv(home string) []string {
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

func (t *Temporal) ready(ctx context.Context) error {
	if err := TemporalReady(ctx, t.Address(), nil, Namespace); err != nil {
		return err
	}
	return t.uiReady(ctx)
}

// TemporalClient returns a client of the server at the address that connects at its first call and
// logs nothing. Nil connects without TLS.
func TemporalClient(address string, encryption *tls.Config) (client.Client, error) {
	c, err := client.NewLazyClient(client.Options{
		HostPort:          address,
		Logger:            log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{TLS: encryption},
	})
	if err != nil {
		return nil, errors.Wrap(err, "make a client")
	}
	return c, nil
}

// TemporalReady returns nil if the server at the address accepts workflows in the namespace. Nil
// connects without TLS.
//
// It describes a workflow that doesn't exist. The right answer requires that the frontend has the
// namespace and that the history service owns the shard.
func TemporalReady(ctx context.Context, address string, encryption *tls.Config, namespace string) error {
	c, err := TemporalClient(address, encryption)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.CheckHealth(ctx, nil); err != nil {
		return errors.Wrap(err, "check health")
	}
	service := c.WorkflowService()
	_, err = service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return errors.Wrapf(err, "describe namespace %s", namespace)
	}
	_, err = service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: namespace,
		Execution: &common.WorkflowExecution{WorkflowId: "devstack-ready"},
	})
	var absent *serviceerror.NotFound
	if errors.As(err, &absent) || err == nil {
		return nil
	}
	return errors.Wrapf(err, "ask for a workflow in namespace %s", namespace)
}

// uiReady requests the data of the web UI's first page. The UI connects to the frontend before the
// frontend listens, and retries later.
func (t *Temporal) uiReady(ctx context.Context) error {
	if t.uiPort == Headless {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.UIURL()+"/api/v1/namespaces/"+Namespace+"/workflow-count", nil)
	if err != nil {
		return errors.Wrap(err, "ask the web UI")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return errors.Wrap(err, "ask the web UI")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.Errorf("the web UI answers %s for namespace %s", response.Status, Namespace)
	}
	return nil
}
