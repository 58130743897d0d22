package testkit

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"earshot/internal/devstack"
	"earshot/internal/searchattributes"
)

const (
	// retention is the minimum that Temporal accepts. The server of the tests is removed much
	// earlier.
	retention = 24 * time.Hour
	// namespaceLocks is the class of the advisory locks on namespaces. The locks are held in the
	// tests' Postgres.
	namespaceLocks = 4281
	// mostEnded bounds the open runs that are terminated in a namespace. The server takes 13 to 18 ms
	// for each: 9 s for the 500 of package mcp. Left alone, without a schedule and a
	// worker, 500 take less than 1 s of processor time in 30 s.
	mostEnded = 100
	// setUpWait bounds the time until the whole server knows a new namespace.
	setUpWait = 30 * time.Second
)

// Namespace leases a Temporal namespace to one test and returns client options for it. The
// namespace has the service's search attributes. When the test ends, its open workflows and
// schedules end and another test can lease the namespace. So the namespace contains closed
// workflows of earlier tests. A test that counts workflows must restrict the query to those since
// its start.
//
// A namespace with more than mostEnded open workflows keeps them and is not leased again.
func Namespace(t testing.TB) client.Options {
	t.Helper()
	o, giveBack, err := LeaseNamespace(t.Context())
	require.NoError(t, err)
	t.Cleanup(giveBack)
	return o
}

// LeaseNamespace is Namespace without a test. Calling giveBack ends the lease.
func LeaseNamespace(ctx context.Context) (o client.Options, giveBack func(), err error) {
	for number := 1; ; number++ {
		o = namespaceOptions(os.Getenv(temporalVariable), fmt.Sprintf("test-%d", number))
		leased, err := lease(ctx, number, o)
		if err != nil {
			return o, nil, err
		}
		if leased {
			return o, func() { emptying.Go(func() { giveUp(number, o) }) }, nil
		}
	}
}

// giveUp empties a namespace and ends its lease.
func giveUp(number int, o client.Options) {
	defer unlock(number)
	if err := empty(context.Background(), o); err != nil && !errors.Is(err, errFull) {
		fmt.Fprintf(os.Stderr, "testkit: empty the namespace %s: %v\n", o.Namespace, err)
	}
}

// lease locks a namespace and empties it. It returns false if another test has the namespace, or if the
// namespace is full.
func lease(ctx context.Context, number int, o client.Options) (leased bool, err error) {
	if leased, err = lock(ctx, number); err != nil || !leased {
		return false, err
	}
	if _, known := prepared.Load(number); !known {
		err = setUp(ctx, o)
	}
	if err == nil {
		prepared.Store(number, true)
		// The list at the end of the previous test may lack a workflow that had just started. So the
		// namespace is emptied here as well.
		err = empty(ctx, o)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errFull):
		return false, nil // stays locked, so that this process doesn't look at it again
	default:
		unlock(number)
		return false, err
	}
}

// prepared has the numbers of the namespaces that this process has set up.
var prepared sync.Map

// ours has the numbers of the namespaces that this process has locked. Postgres would give them to the
// same connection again. The mutex of administer guards it.
var ours = map[int]bool{}

// lock locks a namespace. The connection holds the lock, so a process that dies releases its namespaces.
func lock(ctx context.Context, number int) (locked bool, err error) {
	err = administer(ctx, func(ctx context.Context, c *pgx.Conn) error {
		if ours[number] {
			return nil
		}
		err := c.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, $2)", namespaceLocks, number).Scan(&locked)
		ours[number] = locked
		return err
	})
	if err != nil {
		return false, errors.Wrap(err, "lock a namespace")
	}
	return locked, nil
}

func unlock(number int) {
	err := administer(context.Background(), func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SELECT pg_advisory_unlock($1, $2)", namespaceLocks, number)
		delete(ours, number)
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "testkit: unlock a namespace:", err)
	}
}

// errFull is the error of empty for a namespace that keeps its open runs.
var errFull = errors.New("the namespace has more open runs than a test ends")

// emptying tracks the namespaces that are emptied while the next tests run. Run waits for them.
var emptying sync.WaitGroup

// NewNamespace creates a namespace for one test that contains no workflows of other tests.
func NewNamespace(t testing.TB) client.Options {
	t.Helper()
	o := newNamespace(t, os.Getenv(temporalVariable))
	t.Cleanup(func() {
		if err := empty(context.Background(), o); err != nil && !errors.Is(err, errFull) {
			t.Log("end the runs of the namespace:", err)
		}
	})
	return o
}

// NamespaceWith is NewNamespace on a separate server with settings of Temporal's dynamic
// configuration, each as name=value.
func NamespaceWith(t testing.TB, settings ...string) client.Options {
	t.Helper()
	report := devstack.Report(t.Logf)
	binary, err := devstack.TemporalBinary(t.Context(), Root(), report)
	require.NoError(t, err)
	var args []string
	for _, setting := range settings {
		args = append(args, "--dynamic-config-value", setting)
	}
	server, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{
		Dir: t.TempDir(), Binary: binary, UIPort: devstack.Headless, ExtraArgs: args, Report: report,
	})
	require.NoError(t, err)
	t.Cleanup(func() { withTimeout(server.Stop) })
	return newNamespace(t, server.Address())
}

func newNamespace(t testing.TB, address string) client.Options {
	t.Helper()
	o := namespaceOptions(address, "test-"+uuid.NewString())
	require.NoError(t, setUp(t.Context(), o))
	return o
}

func namespaceOptions(address, name string) client.Options {
	return client.Options{
		HostPort: address, Namespace: name,
		// Recorded histories contain the identity, which must not be a machine's name.
		Identity: "earshot-test",
		Logger:   log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	}
}

// connection is that of this process to the tests' Temporal. It stays open until the process ends.
var connection = sync.OnceValues(func() (client.Client, error) {
	return client.Dial(namespaceOptions(os.Getenv(temporalVariable), "default"))
})

// dial returns a client of the namespace. Clients of the tests' Temporal share a connection.
func dial(ctx context.Context, o client.Options) (c client.Client, err error) {
	if o.HostPort != os.Getenv(temporalVariable) {
		c, err = client.DialContext(ctx, o)
	} else if c, err = connection(); err == nil {
		c, err = client.NewClientFromExistingWithContext(ctx, c, o)
	}
	if err != nil {
		return nil, errors.Wrap(err, "reach the tests' Temporal")
	}
	return c, nil
}

// attributes are the search attributes that the service registers.
var attributes = sync.OnceValues(func() (searchattributes.Attributes, error) {
	return searchattributes.Read(filepath.Join(Root(), "temporal-dev.yaml"))
})

// setUp registers the namespace if necessary, and returns when workflows can use the search
// attributes.
func setUp(ctx context.Context, o client.Options) error {
	c, err := dial(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	wanted, err := attributes()
	if err != nil {
		return err
	}
	_, err = c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: o.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	var there *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &there) {
		return errors.Wrap(err, "register a namespace")
	}
	// The server's services learn of a new namespace at different times.
	for deadline := time.Now().Add(setUpWait); ; {
		_, err := searchattributes.SetUp(ctx, c, o.Namespace, wanted)
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(Tick):
		}
	}
}

// empty deletes the schedules of a namespace, terminates its open workflows, and waits until none
// is listed. Otherwise they would go on and use a third of a processor after 200 tests. It returns errFull
// without ending a workflow if there are more than mostEnded.
func empty(ctx context.Context, o client.Options) error {
	ctx, cancel := context.WithTimeout(ctx, Wait)
	defer cancel()
	c, err := dial(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		left, err := endAll(ctx, c, o.Namespace)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "wait for the end of runs")
		case <-time.After(Tick):
		}
	}
}

// endAll ends all listed workflows and schedules and returns their number.
func endAll(ctx context.Context, c client.Client, name string) (found int, err error) {
	schedules, err := c.WorkflowService().ListSchedules(ctx, &workflowservice.ListSchedulesRequest{Namespace: name, MaximumPageSize: 1000})
	if err != nil {
		return 0, errors.Wrap(err, "list schedules")
	}
	var gone *serviceerror.NotFound
	for _, s := range schedules.GetSchedules() {
		if err := c.ScheduleClient().GetHandle(ctx, s.GetScheduleId()).Delete(ctx); err != nil && !errors.As(err, &gone) {
			return 0, errors.Wrap(err, "delete a schedule")
		}
	}
	open, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running'", PageSize: 1000})
	if err != nil {
		return 0, errors.Wrap(err, "list open runs")
	}
	if len(open.GetExecutions()) > mostEnded {
		return 0, errFull
	}
	for _, run := range open.GetExecutions() {
		err := c.TerminateWorkflow(ctx, run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId(), "its test has ended")
		if err != nil && !errors.As(err, &gone) {
			return 0, errors.Wrap(err, "terminate a run")
		}
	}
	return len(schedules.GetSchedules()) + len(open.GetExecutions()), nil
}

// Temporal returns a client in a new Namespace.
func Temporal(t testing.TB) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), Namespace(t))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}
