package check_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/e2e/faults/check"
)

// survived is a world without violations. One webhook is healthy. The other is dead and was
// disabled at 100 s. A worker was killed at 50 s, and Postgres was away from 110.5 to 113 s.
func survived(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.webhook("healthy", "post.created", "post.status_changed")
	w.webhook("dead", "post.created")
	w.in.Kills = []check.Kill{
		{What: "worker-2", At: at(50.2), Back: at(52)}, {What: "postgres", At: at(110.5), Back: at(113)},
	}
	w.beforeTheKill()
	w.aroundTheKill()
	w.exec(`UPDATE webhooks SET enabled = false, disabled_at = $2, updated_at = $2, disabled_reason = 'failures'
		WHERE id = $1`, w.hooks["dead"], at(100))
	w.afterTheWebhookWasDisabled()
	return w
}

func (w *world) beforeTheKill() {
	w.post("first", 10)
	d := w.deliver("first", "healthy", 10)
	w.attempt(d, 1, 10.1, 200)
	w.succeed(d, 10.13)
	d = w.deliver("first", "dead", 10)
	for n := range 5 {
		w.attempt(d, n+1, 10.1+float64(n), 503)
	}
	w.fail(d, 14.13, "")

	w.post("second", 20)
	d = w.deliver("second", "healthy", 20)
	w.attempt(d, 1, 20.1, 500)
	w.attempt(d, 2, 21.1, 204)
	w.succeed(d, 21.13)
	d = w.deliver("second", "dead", 20)
	w.attempt(d, 1, 20.1, 503)
	w.fail(d, 101, "webhook_disabled")
}

func (w *world) aroundTheKill() {
	w.post("third", 50)
	d := w.deliver("third", "healthy", 50)
	w.receive(d, 50.15, 200) // The worker was dead and couldn't record it.
	w.attempt(d, 1, 63.2, 200)
	w.succeed(d, 63.23)
	w.fail(w.deliver("third", "dead", 50), 102, "webhook_disabled")
}

func (w *world) afterTheWebhookWasDisabled() {
	w.post("fourth", 110)
	d := w.deliver("fourth", "healthy", 110)
	w.attempt(d, 1, 114, 200)
	w.succeed(d, 114.03)

	w.event("test", 120, "webhook.test", `{"event":"webhook.test"}`)
	d = w.deliver("test", "healthy", 120)
	w.attempt(d, 1, 120.1, 200)
	w.succeed(d, 120.13)

	w.delivery("replay", "first", "healthy", 130)
	w.exec(`UPDATE deliveries SET replay_of = $2 WHERE id = $1`, w.deliveries["replay"], w.deliveries["first to healthy"])
	w.attempt("replay", 1, 130.1, 200)
	w.succeed("replay", 130.13)
}

func TestARunInWhichAllWentWellHasNoViolations(t *testing.T) {
	t.Parallel()
	w := survived(t)
	ms := time.Millisecond
	report, err := check.Run(t.Context(), w.input())
	require.NoError(t, err)
	require.Equal(t, check.Report{
		Acknowledged: 4, Events: 5, Deliveries: 9, Replays: 1, Tests: 1,
		Succeeded: 6, Failed: 1, Disabled: 2,
		Attempts: 13, Receipts: 14, Unrecorded: 1, Duplicates: 1, DuplicateBound: 1,
		Kills: []check.Recovery{
			// The next receipt after Back is at 63.205 s.
			{Kill: w.in.Kills[0], First: new(11205 * ms)},
			{Kill: w.in.Kills[1], First: new(1005 * ms), Waited: check.Times{Count: 1, P50: 1005 * ms, Max: 1005 * ms}},
		},
		Waited: check.Times{Count: 1, P50: 1005 * ms, Max: 1005 * ms},
		Redone: check.Times{Count: 1, P50: 13055 * ms, Max: 13055 * ms},
	}, report)
	pending, err := check.Pending(t.Context(), w.in.Database)
	require.NoError(t, err)
	require.Zero(t, pending)
}

func TestTheReportSeparatesWaitsForAProcessFromWaitsForAServer(t *testing.T) {
	t.Parallel()
	w := survived(t)
	// This is the last kill before the fourth post, which is received 1.005 s after it.
	w.in.Kills = append(w.in.Kills, check.Kill{What: "worker-1 at after-claim", At: at(112), Back: at(113)})
	report, err := check.Run(t.Context(), w.input())
	require.NoError(t, err)
	require.Equal(t, 1, report.Waited.Count)
	require.Equal(t, report.Waited, report.Restarted)
}
