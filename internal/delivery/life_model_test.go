package delivery_test

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	changes "earshot/internal/change"
	"earshot/internal/publicid"
)

// lifeHook is the expected state of a webhook.
type lifeHook struct {
	id       publicid.Webhook
	enabled  bool
	failures int
	deleted  bool
}

// lifeRow is the expected state of a delivery's row. Times are the model's; zero is null.
type lifeRow struct {
	n         int // its number in the log
	id        publicid.Delivery
	hook      *lifeHook
	eventType string
	payload   []byte
	status    string
	attempts  []lifeOutcome // the recorded attempts, from number 1
	start     int           // attempts before the current schedule
	due       time.Time
	lease     time.Time
	workflow  string
	run       string
	failure   string
	response  int
	replayOf  *lifeRow
	removed   bool
}

// lifeOutcome is a receiver's response.
type lifeOutcome struct {
	response int
	failure  string
}

// lifeRun is a workflow run that waits for its delivery's attempt, or for the time at which it is
// due.
type lifeRun struct {
	workflow, id string
	row          *lifeRow
	number       int // of the next attempt
	due          time.Time
	busy         bool
}

func (r *lifeRow) there() bool                  { return !r.removed && !r.hook.deleted }
func (r *lifeRow) pending() bool                { return r.there() && r.status == "pending" }
func (r *lifeRow) leased(now time.Time) bool    { return r.lease.After(now) }
func (r *lifeRow) claimable(now time.Time) bool { return r.pending() && !r.leased(now) }

// fail ends a delivery without an attempt. An attempt in flight keeps its lease.
func (r *lifeRow) fail(reason string) {
	r.status, r.failure, r.due = "failed", reason, time.Time{}
}

// born adds the deliveries of a change to the model. It starts a run for each delivery whose start
// isn't lost.
func (l *life) born(replayOf *lifeRow, eventType string) {
	for _, d := range l.dispatched {
		hook := l.hooks[slices.IndexFunc(l.hooks, func(h *lifeHook) bool { return h.id == d.Webhook })]
		r := &lifeRow{n: len(l.rows), id: d.ID, hook: hook, eventType: eventType, status: "pending", due: l.now(), replayOf: replayOf}
		err := l.pool.QueryRow(l.ctx, "SELECT e.payload FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.id = $1",
			d.ID.UUID()).Scan(&r.payload)
		require.NoError(l.t, err)
		if replayOf != nil {
			require.True(l.t, bytes.Equal(replayOf.payload, r.payload), "a replay has the bytes of the event")
		}
		l.rows = append(l.rows, r)
		if rapid.IntRange(0, 3).Draw(l.t, "its start is lost at 3") < 3 {
			l.start(r)
		}
	}
	l.dispatched = nil
}

// start runs a workflow for a delivery unless one is open.
func (l *life) start(r *lifeRow) {
	if workflow := r.id.String(); !l.open(workflow) {
		l.runs = append(l.runs, &lifeRun{workflow: workflow, id: l.name("run "), row: r, number: 1, due: l.now()})
	}
}

func (l *life) open(workflow string) bool {
	return slices.ContainsFunc(l.runs, func(r *lifeRun) bool { return r.workflow == workflow })
}

// drop removes a run.
func (l *life) drop(run *lifeRun) {
	l.runs = where(l.runs, func(r *lifeRun) bool { return r != run })
	for _, a := range l.attempts {
		if a.run == run {
			a.run = nil
		}
	}
}

// end closes a run.
func (l *life) end(run *lifeRun) {
	l.drop(run)
	l.over = append(l.over, run)
}

const lifeRowsSQL = `
SELECT d.id, d.status, d.attempt_count, d.schedule_start, d.next_attempt_at, d.lease_until, coalesce(d.workflow_id, ''),
  coalesce(d.workflow_run_id, ''), coalesce(d.last_error, ''), coalesce(d.last_response_status, 0), d.replay_of,
  d.delivered_at IS NOT NULL, d.failed_at IS NOT NULL,
  ARRAY(SELECT number FROM attempts a WHERE a.delivery_id = d.id ORDER BY number),
  ARRAY(SELECT coalesce(response_status, 0) FROM attempts a WHERE a.delivery_id = d.id ORDER BY number),
  ARRAY(SELECT coalesce(error, '') FROM attempts a WHERE a.delivery_id = d.id ORDER BY number)
FROM deliveries d JOIN webhooks h ON h.id = d.webhook_id AND h.deleted_at IS NULL`

// lifeFound is the actual state of a row.
type lifeFound struct {
	ID                 uuid.UUID
	Status             string
	Count, Start       int
	Due, Lease         *time.Time
	Workflow, Run      string
	Failure            string
	Response           int
	ReplayOf           *uuid.UUID
	Delivered, Failed  bool
	Numbers, Responses []int
	Failures           []string
}

// check compares the tables with the model.
func (l *life) check(t *rapid.T) {
	rows, err := l.pool.Query(l.ctx, lifeRowsSQL)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[lifeFound])
	require.NoError(t, err)
	found := map[uuid.UUID]lifeFound{}
	for _, f := range all {
		found[f.ID] = f
	}
	for i, r := range l.rows {
		f, there := found[r.id.UUID()]
		delete(found, r.id.UUID())
		require.Equal(t, r.there(), there, "delivery %d is there", i)
		if there {
			l.same(t, i, r, f)
		}
	}
	require.Empty(t, found, "deliveries that nobody made")
	l.checkHooks(t)
}

// same compares one row with the model.
func (l *life) same(t *rapid.T, i int, r *lifeRow, f lifeFound) {
	require.Equal(t, r.status, f.Status, "status of delivery %d", i)
	require.Equal(t, len(r.attempts), f.Count, "attempts that count of delivery %d", i)
	require.LessOrEqual(t, f.Count-f.Start, len(l.delays)+1, "attempts of one schedule of delivery %d", i)
	require.Equal(t, r.start, f.Start, "where the schedule of delivery %d begins", i)
	l.sameMoment(t, "the next attempt", i, r.due, f.Due)
	l.sameMoment(t, "the lease", i, r.lease, f.Lease)
	require.Equal(t, []string{r.workflow, r.run}, []string{f.Workflow, f.Run}, "who has taken delivery %d on", i)
	require.Equal(t, r.failure, f.Failure, "last error of delivery %d", i)
	require.Equal(t, r.response, f.Response, "last answer to delivery %d", i)
	require.Equal(t, []bool{r.status == "succeeded", r.status == "failed"}, []bool{f.Delivered, f.Failed}, "the end of delivery %d", i)
	require.Equal(t, r.replayOf != nil, f.ReplayOf != nil, "delivery %d is a replay", i)
	for n, a := range r.attempts {
		require.Greater(t, len(f.Numbers), n, "attempts of delivery %d", i)
		require.Equal(t, n+1, f.Numbers[n], "attempts of delivery %d have the numbers from 1 on", i)
		require.Equal(t, a, lifeOutcome{f.Responses[n], f.Failures[n]}, "outcome of attempt %d of delivery %d", n+1, i)
	}
	require.Len(t, f.Numbers, len(r.attempts), "attempts of delivery %d", i)
}

func (l *life) sameMoment(t *rapid.T, what string, i int, wanted time.Time, found *time.Time) {
	require.Equal(t, wanted.IsZero(), found == nil, "%s of delivery %d is null", what, i)
	if found != nil {
		require.WithinDuration(t, wanted, found.Add(l.past), lifeSlack, "%s of delivery %d", what, i)
	}
}

func (l *life) checkHooks(t *rapid.T) {
	rows, err := l.pool.Query(l.ctx, "SELECT id, enabled, consecutive_failures, coalesce(disabled_reason, '') FROM webhooks WHERE deleted_at IS NULL")
	require.NoError(t, err)
	type state struct {
		ID       publicid.Webhook
		Enabled  bool
		Failures int
		Reason   string
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[state])
	require.NoError(t, err)
	found := map[publicid.Webhook]state{}
	for _, s := range all {
		found[s.ID] = s
	}
	for i, h := range l.hooks {
		s, there := found[h.id]
		require.Equal(t, !h.deleted, there, "webhook %d is there", i)
		if there {
			require.Equal(t, h.failures, s.Failures, "failures in a row of webhook %d", i)
			require.Equal(t, h.enabled, s.Enabled, "webhook %d is enabled", i)
			require.Equal(t, h.enabled, s.Reason == "", "webhook %d has no reason to be disabled", i)
		}
	}
}

// wanted returns the webhooks that receive an event.
func (l *life) wanted() (all []publicid.Webhook) {
	for _, h := range l.hooks {
		if h.enabled && !h.deleted {
			all = append(all, h.id)
		}
	}
	return all
}

func webhooksOf(all []changes.PendingDelivery) (found []publicid.Webhook) {
	for _, d := range all {
		found = append(found, d.Webhook)
	}
	return found
}
