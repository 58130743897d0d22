package devstack

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"earshot/internal/testkit/tier"
)

const testQueue = "devstack"

func startTemporalIn(t *testing.T, o TemporalOptions) *Temporal {
	t.Helper()
	o.Report = t.Logf
	if o.Binary == "" {
		var err error
		o.Binary, err = TemporalBinary(t.Context(), repository(), o.Report)
		require.NoError(t, err)
	}
	s, err := StartTemporal(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

func dialTemporal(t *testing.T, s *Temporal, namespace string) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: s.Address(), Namespace: namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// shortTimers is the number of timers. They would take 10 s if each were rounded up to a second.
const shortTimers = 10

// greet is a workflow with an activity and some timers.
func greet(ctx workflow.Context, name string) (string, error) {
	for range shortTimers {
		if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
			return "", err
		}
	}
	return "hello " + name, nil
}

// work runs a worker in the client's namespace until the test ends.
func work(t *testing.T, c client.Client) {
	t.Helper()
	w := worker.New(c, testQueue, worker.Options{})
	w.RegisterWorkflow(greet)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

func requireGreeting(t *testing.T, run client.WorkflowRun, name string) {
	t.Helper()
	var greeting string
	require.NoError(t, run.Get(t.Context(), &greeting))
	require.Equal(t, "hello "+name, greeting)
}

func TestATimerOfAMillisecondDoesNotTakeASecond(t *testing.T) {
	t.Parallel()
	s := startTemporalIn(t, TemporalOptions{Dir: t.TempDir(), UIPort: Headless})
	require.Empty(t, s.UIURL())
	c := dialTemporal(t, s, "default")
	work(t, c)
	began := time.Now()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: testQueue}, greet, "x")
	require.NoError(t, err)
	requireGreeting(t, run, "x")
	require.Less(t, time.Since(began), shortTimers*time.Second)
}

func TestANamespaceRegisteredLaterRunsWorkflowsAndSchedulesAtOnce(t *testing.T) {
	tier.Slow(t, "starts a server and waits for a schedule")
	t.Parallel()
	s := startTemporalIn(t, TemporalOptions{Dir: t.TempDir(), UIPort: Headless})
	_, err := dialTemporal(t, s, "default").WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: "later", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	c := dialTemporal(t, s, "later")
	work(t, c)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: testQueue}, greet, "x")
	require.NoError(t, err)
	requireGreeting(t, run, "x")
	schedule, err := c.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: "nightly", Paused: true, // so only the trigger starts it
		Action: &client.ScheduleWorkflowAction{ID: "scheduled", Workflow: greet, Args: []any{"night"}, TaskQueue: testQueue},
	})
	require.NoError(t, err)
	require.NoError(t, schedule.Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	var id string
	require.Eventually(t, func() bool {
		described, err := schedule.Describe(t.Context())
		if err != nil || len(described.Info.RecentActions) == 0 {
			return false
		}
		id = described.Info.RecentActions[0].StartWorkflowResult.WorkflowID
		return true
	}, 20*time.Second, 20*time.Millisecond)
	requireGreeting(t, c.GetWorkflow(t.Context(), id, ""), "night")
}

func TestTheWebUIAnswersAndTheDatabaseFileKeepsWorkflows(t *testing.T) {
	tier.Slow(t, "starts a server twice")
	t.Parallel()
	dir := t.TempDir()
	s := startTemporalIn(t, TemporalOptions{Dir: dir, DatabaseFile: true})
	for _, path := range []string{"/api/v1/namespaces/default", "/api/v1/namespaces/default/workflows", "/api/v1/cluster-info", ""} {
		response, err := http.Get(s.UIURL() + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, path)
	}
	options := client.StartWorkflowOptions{ID: "kept", TaskQueue: testQueue}
	_, err := dialTemporal(t, s, "default").ExecuteWorkflow(t.Context(), options, greet, "x")
	require.NoError(t, err)
	require.NoError(t, s.Stop(t.Context()))

	again := startTemporalIn(t, TemporalOptions{Dir: dir, DatabaseFile: true, UIPort: Headless})
	described, err := dialTemporal(t, again, "default").DescribeWorkflowExecution(t.Context(), "kept", "")
	require.NoError(t, err)
	require.Equal(t, "kept", described.WorkflowExecutionInfo.Execution.WorkflowId)
}

// Without the setting, a server with thousands of runs is slow, and the web UI fails in one of eight
// views of a busy list. Neither can be provoked here, so the test checks the setting.
func TestAServerReadsSearchAttributesFromMemory(t *testing.T) {
	t.Parallel()
	args, err := (&Temporal{uiPort: Headless}).args(TemporalOptions{Dir: t.TempDir(), Report: t.Logf})
	require.NoError(t, err)
	require.Contains(t, args, "system.forceSearchAttributesCacheRefreshOnRead=false")
}

// With v1.44 of modernc.org/sqlite, a request that was canceled during a query closed the only connection. A
// database in memory ends with it: each later request failed with "no such table: namespaces".
func TestARequestThatItsClientCancelsDeletesNoDatabase(t *testing.T) {
	t.Parallel()
	// A CLI on the PATH has a SQLite of its own.
	binary, err := cliProgram.Built(t.Context(), repository(), t.Logf)
	require.NoError(t, err)
	s := startTemporalIn(t, TemporalOptions{Dir: t.TempDir(), UIPort: Headless, Binary: binary})
	c := dialTemporal(t, s, "default")
	list := func(ctx context.Context) (*workflowservice.ListWorkflowExecutionsResponse, error) {
		return c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{})
	}
	const runs = 200 // their list takes some 10 ms
	for range runs {
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: testQueue}, greet, "x")
		require.NoError(t, err)
	}
	const canceled = 1000 // one of them is enough
	for i := range canceled {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*5*time.Microsecond)
		_, _ = list(ctx)
		cancel()
	}
	_, err = c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(t *assert.CollectT) { // a run is listed some moments after its start
		listed, err := list(context.Background())
		require.NoError(t, err)
		require.Len(t, listed.Executions, runs)
	}, 20*time.Second, 20*time.Millisecond)
}

func TestTwoTemporalServersRunBesideEachOther(t *testing.T) {
	t.Parallel()
	one := startTemporalIn(t, TemporalOptions{Dir: t.TempDir()})
	two := startTemporalIn(t, TemporalOptions{Dir: t.TempDir(), Port: one.port, UIPort: one.uiPort})
	require.NotEqual(t, one.Address(), two.Address())
	require.NotEqual(t, one.UIURL(), two.UIURL())
}

func TestATemporalThatRefusesItsArgumentsSaysWhy(t *testing.T) {
	t.Parallel()
	binary, err := TemporalBinary(t.Context(), repository(), t.Logf)
	require.NoError(t, err)
	_, err = StartTemporal(t.Context(), TemporalOptions{Dir: t.TempDir(), Binary: binary, ExtraArgs: []string{"--no-such-flag"}})
	require.ErrorContains(t, err, "unknown flag: --no-such-flag")
}
