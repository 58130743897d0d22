package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

// load posts until it is stopped.
type load struct {
	stop context.CancelFunc
	all  sync.WaitGroup
	// underWay has a slot for each post that hasn't arrived, so that a slow machine gets less load
	// instead of a queue.
	underWay chan struct{}

	mu    sync.Mutex
	posts []string
}

// startLoad posts from four goroutines.
func startLoad(p *program, r *testkit.Receiver) *load {
	ctx, stop := context.WithCancel(p.t.Context())
	l := &load{stop: stop, underWay: make(chan struct{}, 40)}
	r.Answer(func(int, testkit.Received) int {
		select {
		case <-l.underWay:
		default: // A duplicate. The test detects it.
		}
		return http.StatusOK
	})
	for poster := range 4 {
		l.all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-ctx.Done():
					return
				case l.underWay <- struct{}{}:
				}
				id := p.postOf(fmt.Sprintf("Idea %d of %d", i, poster))
				l.mu.Lock()
				l.posts = append(l.posts, id)
				l.mu.Unlock()
			}
		})
	}
	p.t.Cleanup(func() { l.end() })
	return l
}

// end stops the load and returns the posts.
func (l *load) end() []string {
	l.stop()
	l.all.Wait()
	return l.posts
}

// await waits for n more posts.
func (l *load) await(t *testing.T, n int) {
	t.Helper()
	count := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.posts) }
	before := count()
	require.Eventually(t, func() bool { return count() >= before+n }, waitLimit, pollInterval)
}

// dial returns a client of the namespace in the options.
func dial(t *testing.T, o client.Options) client.Client {
	t.Helper()
	c, err := client.Dial(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// runs returns the runs that match a visibility query.
func runs(t require.TestingT, c client.Client, query string) (found []*workflow.WorkflowExecutionInfo) {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query}
	for {
		page, err := c.ListWorkflow(context.Background(), request)
		require.NoError(t, err)
		found = append(found, page.GetExecutions()...)
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return found
		}
	}
}

// awaitDeliveryRuns waits until all runs of deliveries are closed and returns them. No delivery is
// sent after that.
func awaitDeliveryRuns(t *testing.T, c client.Client) []*workflow.WorkflowExecutionInfo {
	t.Helper()
	const deliveries = "WorkflowType = 'deliver_webhooks'"
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		require.Empty(collect, runs(collect, c, deliveries+" AND ExecutionStatus = 'Running'"))
	}, afterKill, pollInterval)
	return runs(t, c, deliveries)
}

// requireNoFailedTask checks that the histories have no failed workflow task. A task fails, for
// example, when its replay has a different result. Tasks that Temporal refused because of a new
// signal don't count, because they run again.
func requireNoFailedTask(t *testing.T, c client.Client, all []*workflow.WorkflowExecutionInfo) {
	t.Helper()
	require.NotEmpty(t, all)
	for _, run := range all {
		id := run.GetExecution()
		events := c.GetWorkflowHistory(t.Context(), id.GetWorkflowId(), id.GetRunId(), false, 0)
		for events.HasNext() {
			e, err := events.Next()
			require.NoError(t, err)
			if e.GetWorkflowTaskFailedEventAttributes().GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND {
				continue
			}
			require.NotEqual(t, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED, e.GetEventType(), "%s: %v", id, e)
		}
	}
}

// once returns the expected count of one arrival for each post.
func once(posts []string) map[string]int {
	times := map[string]int{}
	for _, id := range posts {
		times[id] = 1
	}
	return times
}

func TestWorkersAreReplacedUnderLoadAndEveryPostArrivesExactlyOnce(t *testing.T) {
	tier.Slow(t, "replaces workers under load")
	t.Parallel()
	r, namespace := testkit.NewReceiver(t), testkit.NewNamespace(t)
	p := newProgram(t, settingsOf(namespace)...)
	p.serveAlone()
	workers := []*process{p.worker(), p.worker()}
	p.subscribe(r)
	load := startLoad(p, r)
	for i := range 6 {
		load.await(t, 50)
		fresh := p.worker()
		require.Zero(t, workers[i%2].signal(syscall.SIGTERM), "exit code of an orderly stop")
		workers[i%2] = fresh
	}
	posts := load.end()
	require.NotContains(t, posts, "", "every post is acknowledged")
	awaitPosts(t, r, posts)
	c := dial(t, namespace)
	requireNoFailedTask(t, c, awaitDeliveryRuns(t, c))
	require.Equal(t, once(posts), arrived(t, r))
}

// TestANewBuildTakesOverFromTheCurrentOne moves from workers without versions to build a and then
// to build b, by the command of the operator's page.
func TestANewBuildTakesOverFromTheCurrentOne(t *testing.T) {
	tier.Slow(t, "replaces workers under load")
	t.Parallel()
	r, namespace := testkit.NewReceiver(t), testkit.NewNamespace(t)
	build := func(id string) []string {
		return []string{"EARSHOT_WORKER_DEPLOYMENT=earshot", "EARSHOT_WORKER_BUILD_ID=" + id}
	}
	p := newProgram(t, append(settingsOf(namespace), "EARSHOT_WEBHOOK_RETRY_DELAYS=2s,2s,2s,2s")...)
	p.serveAlone(build("a")...)
	p.subscribe(r)
	// The old workers make the first attempt, and the next ones the second.
	r.Answer(func(n int, _ testkit.Received) int { return map[bool]int{true: 503, false: 200}[n%2 == 1] })
	before := p.worker()
	first := p.post()
	r.Await(t, 1)
	// The old worker stops first, so that the next one always makes the retry.
	require.Zero(t, before.signal(syscall.SIGTERM))
	a := p.worker(build("a")...)
	makeCurrent(t, namespace, "a")
	r.Await(t, 2)
	c := dial(t, namespace)
	awaitDeliveryRuns(t, c) // Otherwise the next build would finish the run.
	second := p.post()
	r.Await(t, 3)
	require.Zero(t, a.signal(syscall.SIGTERM))
	p.worker(build("b")...)
	makeCurrent(t, namespace, "b")
	r.Await(t, 4)
	require.Equal(t, map[string]int{first: 2, second: 2}, arrived(t, r))

	all := awaitDeliveryRuns(t, c)
	requireNoFailedTask(t, c, all)
	built := map[string]int{}
	for _, run := range all {
		d, err := c.DescribeWorkflowExecution(t.Context(), run.GetExecution().GetWorkflowId(), "")
		require.NoError(t, err)
		built[d.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion().GetBuildId()]++
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1}, built, "the build that finished each")
}

// makeCurrent waits for a build's workers and makes the build current.
func makeCurrent(t *testing.T, namespace client.Options, build string) {
	t.Helper()
	binary, err := devstack.TemporalBinary(t.Context(), repository, t.Logf)
	require.NoError(t, err)
	s := &stack{t: t, env: append(cleanEnviron(), settingsOf(namespace)...)}
	var out string
	require.Eventually(t, func() bool {
		var code int
		out, code = s.run(binary, "worker", "deployment", "set-current-version",
			"--deployment-name", "earshot", "--build-id", build, "--yes")
		return code == 0
	}, waitLimit, pollInterval, "%s", out)
}
