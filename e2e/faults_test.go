package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
	"earshot/workflows"
)

// arrived are the posts whose webhooks came, with a valid signature.
func arrived(t *testing.T, r *testkit.Receiver) map[string]int {
	t.Helper()
	times := map[string]int{}
	for _, got := range r.All() {
		require.NoError(t, got.Invalid)
		var payload struct{ Post struct{ ID string } }
		require.NoError(t, json.Unmarshal(got.Body, &payload))
		times[payload.Post.ID]++
	}
	return times
}

// afterKill is how long what was in flight at a kill may take: the lease of an
// attempt, 12 s, and Temporal's own timeout of a lost task, 13 s.
const afterKill = 90 * time.Second

func awaitPosts(t *testing.T, r *testkit.Receiver, posts []string) {
	t.Helper()
	require.Eventually(t, func() bool {
		have := arrived(t, r)
		for _, id := range posts {
			if have[id] == 0 {
				return false
			}
		}
		return true
	}, afterKill, lookEvery, "not every acknowledged post arrived")
}

// TestNothingAcknowledgedIsLostWhenTheProcessIsKilled kills the process in the
// middle of a burst, so anywhere between a commit and the record of an attempt.
func TestNothingAcknowledgedIsLostWhenTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	r := testkit.NewReceiver(t)
	p := newProgram(t, testkit.Database(t), temporalSettings(t)...)
	running := p.serve()
	p.subscribe(r)
	var acknowledged []string
	// Kills after few posts and after many meet different lines.
	for _, killAfter := range []int{1, 7, 60} {
		acknowledged = append(acknowledged, burstUntilKilled(p, running, killAfter)...)
		running = p.serve()
	}
	awaitPosts(t, r, acknowledged)
}

// burstUntilKilled posts from eight goroutines, kills the process as soon as so
// many posts are acknowledged, and returns those that were.
func burstUntilKilled(p *program, running *process, killAfter int) (acknowledged []string) {
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	for range 8 {
		all.Go(func() {
			for {
				id := p.post()
				if id == "" {
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, id)
				enough := len(acknowledged) == killAfter
				mu.Unlock()
				if enough {
					running.kill()
				}
			}
		})
	}
	all.Wait()
	return acknowledged
}

func TestADeliveryThatWasNeverStartedGoesOutAfterTheKill(t *testing.T) {
	t.Parallel()
	r := testkit.NewReceiver(t)
	p := newProgram(t, testkit.Database(t), temporalSettings(t)...)
	// Port 1 is nobody's: this process commits and gets no further.
	cutOff := p.launch("TEMPORAL_ADDRESS=127.0.0.1:1")
	p.awaitStatus("/healthz", http.StatusOK)
	p.subscribe(r)
	id := p.post()
	cutOff.kill()
	p.serve()
	awaitPosts(t, r, []string{id})
	require.Equal(t, map[string]int{id: 1}, arrived(t, r))
}

// TestAnAPIWithoutAWorkerHasStartedWhatTheOneBeforeItLeft pauses the sweep that runs
// by the clock: only that of a start is left to find the delivery.
func TestAnAPIWithoutAWorkerHasStartedWhatTheOneBeforeItLeft(t *testing.T) {
	tier.Slow(t, "kills the process")
	t.Parallel()
	r, namespace := testkit.NewReceiver(t), testkit.NewNamespace(t)
	p := newProgram(t, testkit.Database(t), settingsOf(namespace)...)
	p.worker()
	sweep := dial(t, namespace).ScheduleClient().GetHandle(t.Context(), workflows.SweepSchedule)
	require.Eventually(t, func() bool { return sweep.Pause(t.Context(), client.SchedulePauseOptions{}) == nil }, waitLimit, lookEvery)
	// Port 1 is nobody's: this process commits and gets no further.
	cutOff := p.start([]string{"serve", "--no-worker"}, "TEMPORAL_ADDRESS=127.0.0.1:1")
	p.awaitStatus("/healthz", http.StatusOK)
	p.subscribe(r)
	id := p.post()
	cutOff.kill()
	p.serveAlone()
	awaitPosts(t, r, []string{id})
}

func TestWritesAreAcceptedWhileTemporalIsAwayAndArriveWhenItIsBack(t *testing.T) {
	tier.Slow(t, "stops and starts Temporal")
	t.Parallel()
	binary, err := devstack.TemporalBinary(t.Context(), repository, t.Logf)
	require.NoError(t, err)
	o := devstack.TemporalOptions{Dir: t.TempDir(), DatabaseFile: true, UIPort: devstack.Headless, Binary: binary}
	temporal, err := devstack.StartTemporal(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = temporal.Stop(t.Context()) })
	r := testkit.NewReceiver(t)
	p := newProgram(t, testkit.Database(t), "TEMPORAL_ADDRESS="+temporal.Address())
	// The default namespace, which nothing names.
	out, err := p.command("temporal", "setup", "--file", repository+"/temporal-dev.yaml")
	require.NoError(t, err, out)
	require.Contains(t, out, "registered DeliveryID")
	p.serve()
	p.subscribe(r)

	require.NoError(t, temporal.Stop(t.Context()))
	p.awaitStatus("/readyz", http.StatusServiceUnavailable)
	id := p.post()
	require.NotEmpty(t, id, "a write while Temporal is away")

	_, port, err := net.SplitHostPort(temporal.Address())
	require.NoError(t, err)
	o.Port, err = strconv.Atoi(port)
	require.NoError(t, err)
	back, err := devstack.StartTemporal(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = back.Stop(t.Context()) })
	require.Equal(t, temporal.Address(), back.Address())
	awaitPosts(t, r, []string{id})
	p.awaitStatus("/readyz", http.StatusOK)
}

func TestAnOrderlyStopFinishesTheAttemptThatIsUnderWay(t *testing.T) {
	tier.Slow(t, "waits for an attempt that is under way")
	t.Parallel()
	r := testkit.NewReceiver(t)
	p := newProgram(t, testkit.Database(t), temporalSettings(t)...)
	running := p.serve()
	p.subscribe(r)
	stopped := make(chan int, 1)
	r.Answer(func(int, testkit.Received) int {
		// The answer comes after the stop has begun: nobody listens any more.
		go func() { stopped <- running.signal(syscall.SIGTERM) }()
		awaitRefusal(p)
		return http.StatusOK
	})
	id := p.post()
	require.Zero(t, <-stopped, "exit code of an orderly stop")
	p.serve()
	require.Eventually(t, func() bool { return p.deliveryStatus() == "succeeded" }, waitLimit, lookEvery)
	require.Equal(t, map[string]int{id: 1}, arrived(t, r))
}

func TestASecondSignalEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	r := testkit.NewReceiver(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	p := newProgram(t, testkit.Database(t), append(temporalSettings(t), "EARSHOT_DRAIN_TIMEOUT=1h")...)
	running := p.serve()
	p.subscribe(r)
	r.Answer(func(int, testkit.Received) int { <-release; return http.StatusOK })
	p.post()
	r.Await(t, 1)
	// A second one that comes within the same moment counts as the first.
	require.Eventually(t, func() bool {
		_ = running.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-running.ended:
			return true
		default:
			return false
		}
	}, waitLimit, lookEvery)
	require.Equal(t, -1, running.cmd.ProcessState.ExitCode(), "ended by the signal, not by the drain")
}

// awaitRefusal returns when nothing listens at the API's address.
func awaitRefusal(p *program) {
	for {
		answer, err := http.Get(p.url + "/healthz")
		if err != nil {
			return
		}
		_ = answer.Body.Close()
	}
}

// deliveryStatus is that of the only delivery of the only webhook.
func (p *program) deliveryStatus() string {
	webhook := p.first("/v1/webhooks")
	return fmt.Sprint(p.first("/v1/webhooks/" + fmt.Sprint(webhook["id"]) + "/deliveries")["status"])
}
