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

// arrived returns the posts whose webhooks arrived with a valid signature.
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

// afterKill bounds the recovery of work in flight at a kill. It covers the lease of an attempt, 12
// s, and Temporal's timeout of a lost task, 13 s.
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
	}, afterKill, pollInterval, "not every acknowledged post arrived")
}

// TestNothingAcknowledgedIsLostWhenTheProcessIsKilled kills the process in the middle of a burst,
// at any point between a commit and the record of an attempt.
func TestNothingAcknowledgedIsLostWhenTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	r := testkit.NewReceiver(t)
	p := newProgram(t, temporalSettings(t)...)
	running := p.serve()
	p.subscribe(r)
	var acknowledged []string
	// Kills after few posts and after many interrupt different code.
	for _, killAfter := range []int{1, 7, 60} {
		acknowledged = append(acknowledged, burstUntilKilled(p, running, killAfter)...)
		running = p.serve()
	}
	awaitPosts(t, r, acknowledged)
}

// burstUntilKilled posts from eight goroutines and kills the process after killAfter
// acknowledgements. It returns the acknowledged posts.
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
	p := newProgram(t, temporalSettings(t)...)
	// Port 1 refuses connections, so this process commits and gets no further.
	cutOff := p.launch("TEMPORAL_ADDRESS=127.0.0.1:1")
	p.awaitStatus("/healthz", http.StatusOK)
	p.subscribe(r)
	id := p.post()
	cutOff.kill()
	p.serve()
	awaitPosts(t, r, []string{id})
	require.Equal(t, map[string]int{id: 1}, arrived(t, r))
}

// TestAnAPIWithoutAWorkerStartsTheDeliveriesOfItsPredecessor pauses the scheduled sweep, so that only
// the sweep at the start can find the delivery.
func TestAnAPIWithoutAWorkerStartsTheDeliveriesOfItsPredecessor(t *testing.T) {
	tier.Slow(t, "kills the process")
	t.Parallel()
	r, namespace := testkit.NewReceiver(t), testkit.NewNamespace(t)
	p := newProgram(t, settingsOf(namespace)...)
	p.worker()
	sweep := dial(t, namespace).ScheduleClient().GetHandle(t.Context(), workflows.SweepSchedule)
	require.Eventually(t, func() bool { return sweep.Pause(t.Context(), client.SchedulePauseOptions{}) == nil }, waitLimit, pollInterval)
	// Port 1 refuses connections, so this process commits and gets no further.
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
	p := newProgram(t, "TEMPORAL_ADDRESS="+temporal.Address())
	// This uses the default namespace, without naming it.
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
	p := newProgram(t, temporalSettings(t)...)
	running := p.serve()
	p.subscribe(r)
	stopped := make(chan int, 1)
	r.Answer(func(int, testkit.Received) int {
		// The answer comes after the stop has begun, when the port is closed.
		go func() { stopped <- running.signal(syscall.SIGTERM) }()
		awaitRefusal(p)
		return http.StatusOK
	})
	id := p.post()
	require.Zero(t, <-stopped, "exit code of an orderly stop")
	p.serve()
	require.Eventually(t, func() bool { return p.deliveryStatus() == "succeeded" }, waitLimit, pollInterval)
	require.Equal(t, map[string]int{id: 1}, arrived(t, r))
}

func TestASecondSignalEndsTheProcessAtOnce(t *testing.T) {
	tier.Slow(t, "runs a service and stops it with a request under way")
	t.Parallel()
	r := testkit.NewReceiver(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	p := newProgram(t, append(temporalSettings(t), "EARSHOT_DRAIN_TIMEOUT=1h")...)
	running := p.serve()
	p.subscribe(r)
	r.Answer(func(int, testkit.Received) int { <-release; return http.StatusOK })
	p.post()
	r.Await(t, 1)
	// Two signals at the same moment count as one.
	require.Eventually(t, func() bool {
		_ = running.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-running.ended:
			return true
		default:
			return false
		}
	}, waitLimit, pollInterval)
	require.Equal(t, -1, running.cmd.ProcessState.ExitCode(), "ended by the signal, not by the drain")
}

// awaitRefusal waits until the API's address refuses connections.
func awaitRefusal(p *program) {
	for {
		answer, err := http.Get(p.url + "/healthz")
		if err != nil {
			return
		}
		_ = answer.Body.Close()
	}
}

// deliveryStatus returns the status of the only delivery of the only webhook.
func (p *program) deliveryStatus() string {
	webhook := p.first("/v1/webhooks")
	return fmt.Sprint(p.first("/v1/webhooks/" + fmt.Sprint(webhook["id"]) + "/deliveries")["status"])
}
