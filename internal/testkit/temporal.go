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
	// retention is the shortest that Temporal takes; the server of the tests is
	// thrown away long before.
	retention = 24 * time.Hour
	// namespaceLocks is the first number of the advisory locks on namespaces, which are
	// taken in the tests' Postgres.
	namespaceLocks = 4281
	// setUpWait bounds how long a new namespace takes until the whole server knows it.
	setUpWait = 30 * time.Second
)

// Namespace gives one test a Temporal namespace, set up as the service needs it, and
// returns the options of a client for it. The namespace is leased: when the test ends,
// its open runs and schedules end and another test gets it. So runs of tests before are
// in it, closed; a test that counts runs looks from its start on.
func Namespace(t testing.TB) client.Options {
	t.Helper()
	o, giveBack, err := LeaseNamespace(t.Context())
	require.NoError(t, err)
	t.Cleanup(giveBack)
	return o
}

// LeaseNamespace is Namespace without a test; giveBack ends the lease.
func LeaseNamespace(ctx context.Context) (o client.Options, giveBack func(), err error) {
	// The lock is the connection's: a process that dies gives its namespaces back.
	c, err := pgx.Connect(ctx, os.Getenv(postgresVariable))
	if err != nil {
		return o, nil, errors.Wrap(err, "reach the tests' Postgres")
	}
	unlock := func() { _ = c.Close(context.Background()) }
	number := 0
	for locked := false; !locked; {
		number++
		if err := c.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, $2)", namespaceLocks, number).Scan(&locked); err != nil {
			unlock()
			return o, nil, errors.Wrap(err, "lease a namespace")
		}
	}
	o = namespaceOptions(os.Getenv(temporalVariable), fmt.Sprintf("test-%d", number))
	// A run that started in the last moment of a test was not listed yet when the namespace
	// was given back.
	err = setUp(ctx, o)
	if err == nil {
		err = empty(ctx, o)
	}
	if err != nil {
		unlock()
		return o, nil, err
	}
	return o, func() {
		emptying.Go(func() {
			defer unlock()
			if err := empty(context.Background(), o); err != nil {
				fmt.Fprintf(os.Stderr, "testkit: empty the namespace %s: %v\n", o.Namespace, err)
			}
		})
	}, nil
}

// emptying are the namespaces that are being given back, beside the next tests. Run waits
// for them.
var emptying sync.WaitGroup

// NewNamespace makes a namespace for one test in which no run ever was.
func NewNamespace(t testing.TB) client.Options {
	t.Helper()
	return newNamespace(t, os.Getenv(temporalVariable))
}

// NamespaceWith is a NewNamespace on a server of its own, which has the settings of
// Temporal's dynamic configuration, each as name=value.
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
	t.Cleanup(func() {
		if err := empty(context.Background(), o); err != nil {
			t.Log("end the runs of the namespace:", err)
		}
	})
	return o
}

func namespaceOptions(address, name string) client.Options {
	return client.Options{
		HostPort: address, Namespace: name,
		// Recorded histories hold it, and mustn't hold a machine's name.
		Identity: "earshot-test",
		Logger:   log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	}
}

// attributes are those that the service registers.
var attributes = sync.OnceValues(func() (searchattributes.Attributes, error) {
	return searchattributes.Read(filepath.Join(Root(), "temporal-dev.yaml"))
})

// setUp registers the namespace unless it is there, and returns when runs can have the
// search attributes.
func setUp(ctx context.Context, o client.Options) error {
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return errors.Wrap(err, "reach the tests' Temporal")
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
	// A namespace that was registered a moment ago may not be known everywhere.
	for deadline := time.Now().Add(setUpWait); ; {
		_, err := searchattributes.SetUp(ctx, c, o.Namespace, wanted)
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
}

// lookAgain is the pause between two questions to a server that is still busy.
const lookAgain = 50 * time.Millisecond

// empty deletes the schedules of a namespace and terminates its open runs, and returns when
// none is listed any more. Runs and schedules that are left open go on and cost the server a third of a
// processor after 200 tests.
func empty(ctx context.Context, o client.Options) error {
	ctx, cancel := context.WithTimeout(ctx, Wait)
	defer cancel()
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return errors.Wrap(err, "reach the tests' Temporal")
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
		case <-time.After(lookAgain):
		}
	}
}

// endAll ends whatever the lists show, and returns how much that was.
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
	for _, run := range open.GetExecutions() {
		err := c.TerminateWorkflow(ctx, run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId(), "its test has ended")
		if err != nil && !errors.As(err, &gone) {
			return 0, errors.Wrap(err, "terminate a run")
		}
	}
	return len(schedules.GetSchedules()) + len(open.GetExecutions()), nil
}

// Temporal is a client in a new Namespace.
func Temporal(t testing.TB) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), Namespace(t))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}
