package delivery_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"earshot/ent/db"
	"earshot/ent/db/recovery"
	changes "earshot/internal/change"
	"earshot/internal/delivery"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/retention"
	"earshot/internal/webhooks"
)

// happen makes a change with an event. The change's transaction inserts the deliveries.
func (l *life) happen(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		_, err := changes.Run(l.ctx, l.changes, changes.Request[struct{}]{}, func(c *changes.Change) (struct{}, error) {
			return struct{}{}, c.Record(event.PostCreated, &event.PostCreatedPayload{Post: event.Post{Title: l.name("post ")}})
		})
		require.NoError(t, err)
		require.ElementsMatch(t, l.wanted(), webhooksOf(l.dispatched), "an event goes once to each webhook that wants it")
		l.born(nil, "post.created")
	}
}

// pass advances the time.
func (l *life) pass(t *rapid.T) {
	l.move(t, time.Duration(rapid.SampledFrom([]int{5, 13, 31, 45, 121, 3700}).Draw(t, "minutes"))*time.Minute)
}

// passToNext advances the time until the next run asks for an attempt.
func (l *life) passToNext(t *rapid.T) {
	now := l.now()
	waiting := where(l.runs, func(r *lifeRun) bool { return !r.busy && r.due.After(now) })
	if len(waiting) == 0 {
		t.Skip("nobody waits")
	}
	next := slices.MinFunc(waiting, func(a, b *lifeRun) int { return a.due.Compare(b.due) })
	l.move(t, next.due.Sub(now).Truncate(time.Second)+time.Second) // Postgres has microseconds only
}

// move shifts the times of all rows into the past. It adds some time if a row's time would be too
// close to the present.
func (l *life) move(t *rapid.T, by time.Duration) {
	near := func(at time.Time) bool {
		return !at.IsZero() && at.Sub(l.now().Add(by)).Abs() < 2*lifeSlack
	}
	for slices.ContainsFunc(l.rows, func(r *lifeRow) bool {
		return near(r.due) || near(r.lease) || !r.due.IsZero() && near(r.due.Add(lifeGrace))
	}) {
		by += lifeSlack
	}
	_, err := l.pool.Exec(l.ctx, "UPDATE deliveries SET next_attempt_at = next_attempt_at - $1::interval, lease_until = lease_until - $1::interval", by)
	require.NoError(t, err)
	l.past += by
	t.Logf("%s go by", by)
	for _, a := range l.attempts {
		a.token = a.token.Add(-by)
	}
}

// sweep reads the overdue deliveries page by page and starts a run where none is open.
func (l *life) sweep(t *rapid.T) {
	now := l.now()
	overdue := where(l.rows, func(r *lifeRow) bool { return r.claimable(now) && r.due.Add(lifeGrace).Before(now) })
	limit := rapid.IntRange(1, 5).Draw(t, "page")
	var found []publicid.Delivery
	for last := (delivery.Overdue{}); ; {
		rows, err := delivery.FindOverdue(l.ctx, l.store, lifeGrace, last, limit)
		require.NoError(t, err)
		for _, r := range rows {
			require.False(t, r.DueAt.Before(last.DueAt), "what was due first comes first")
			last = r
			found = append(found, r.ID)
		}
		if len(rows) < limit {
			break
		}
	}
	wanted := make([]publicid.Delivery, len(overdue))
	for i, r := range overdue {
		wanted[i] = r.id
	}
	require.ElementsMatch(t, wanted, found, "what is pending, overdue and nobody's is found, and nothing else")
	for _, r := range overdue {
		switch {
		case l.open(r.workflow):
		case r.workflow != "" && slices.ContainsFunc(l.terminated, func(run *lifeRun) bool { return run.workflow == r.workflow }):
			l.giveUpRows(t, "", r)
		default:
			l.start(r)
		}
	}
}

// lose makes Temporal forget a run.
func (l *life) lose(t *rapid.T) { l.drop(one(t, "runs", l.runs)) }

// terminate is an operator's command. The run is not informed.
func (l *life) terminate(t *rapid.T) {
	run := one(t, "runs", l.runs)
	l.drop(run)
	l.terminated = append(l.terminated, run)
}

// endTerminated ends the deliveries of terminated runs, unless another workflow has claimed them.
func (l *life) endTerminated(t *rapid.T) {
	run := one(t, "terminated runs", l.terminated)
	now := l.now()
	abandoned, err := delivery.Abandoned(l.ctx, l.store, []delivery.Followed{{WorkflowID: run.workflow, ID: run.row.id}})
	require.NoError(t, err)
	r := run.row
	require.Equal(t, r.claimable(now) && (r.workflow == "" || r.workflow == run.workflow), len(abandoned) == 1)
	if len(abandoned) == 1 && !l.open(run.workflow) {
		l.giveUpRows(t, "", r)
	}
	l.terminated = where(l.terminated, func(other *lifeRun) bool { return other != run })
}

func (l *life) giveUpRows(t *rapid.T, run string, r *lifeRow) {
	n, err := delivery.End(l.ctx, l.store, run, "given_up", []publicid.Delivery{r.id})
	require.NoError(t, err)
	require.Equal(t, r.pending(), n == 1, "what is pending is given up, and nothing else")
	if n == 1 {
		r.fail("given_up")
		r.run = cmp.Or(run, r.run)
	}
}

func (l *life) idle() []*lifeRun { return where(l.runs, func(r *lifeRun) bool { return !r.busy }) }

// retryNow is an operator's update of a run: the run asks for its attempt now.
func (l *life) retryNow(t *rapid.T) { one(t, "runs that wait", l.idle()).due = l.now() }

// giveUp is an operator's update or cancellation of a run: the run ends its delivery.
func (l *life) giveUp(t *rapid.T) {
	run := one(t, "runs that wait", l.idle())
	l.giveUpRows(t, run.id, run.row)
	l.end(run)
}

// reset is an operator's command: another run of the same workflow revives deliveries that have
// failed.
func (l *life) reset(t *rapid.T) {
	old := one(t, "runs that are over", where(l.over, func(r *lifeRun) bool { return !l.open(r.workflow) }))
	run, r := &lifeRun{workflow: old.workflow, id: l.name("run "), row: old.row}, old.row
	for range rapid.IntRange(1, 2).Draw(t, "times") {
		if revives := r.there() && r.status == "failed"; revives {
			r.status, r.start, r.due = "pending", len(r.attempts), l.now()
		}
		got, err := delivery.Revive(l.ctx, l.store, run.id, []publicid.Delivery{r.id})
		require.NoError(t, err)
		if !r.pending() {
			require.Empty(t, got)
			return
		}
		require.Equal(t, []delivery.Revived{{ID: r.id, Webhook: r.hook.id, Attempts: len(r.attempts)}}, got)
	}
	run.number, run.due = len(r.attempts)+1, l.now()
	l.runs = append(l.runs, run)
}

// sent compares the answer to a replay with the model and adds the new delivery to it.
func (l *life) sent(t *rapid.T, of *lifeRow, err error) {
	switch {
	case !of.there():
		require.True(t, problem.Is(err, problem.NotFound), "%v", err)
	case !of.hook.enabled:
		require.True(t, problem.Is(err, problem.Conflict), "%v", err)
	default:
		require.NoError(t, err)
		require.Len(t, l.dispatched, 1)
	}
	if err != nil {
		l.dispatched = nil
	}
	l.born(of, of.eventType)
}

func (l *life) replay(t *rapid.T) {
	r := one(t, "deliveries", l.rows)
	_, err := l.webhooks.ReplayDelivery(l.ctx, r.hook.id, r.id, changes.Request[*db.Delivery]{})
	l.sent(t, r, err)
}

// replayAs is the operator's workflow, which may repeat its request.
func (l *life) replayAs(t *rapid.T) {
	r := one(t, "deliveries", l.rows)
	as := publicid.NewDelivery()
	err := l.webhooks.ReplayAs(l.ctx, r.id, as)
	l.sent(t, r, err)
	if err == nil {
		require.NoError(t, l.webhooks.ReplayAs(l.ctx, r.id, as))
		l.dispatched = nil // the row already existed
	}
}

// recover replays, once, each delivery that has failed and has no replay.
func (l *life) recover(t *rapid.T) {
	h := one(t, "webhooks", l.hooks)
	replayed := map[*lifeRow]bool{}
	for _, r := range l.rows {
		if r.there() {
			replayed[r.replayOf] = true
		}
	}
	failed := where(l.rows, func(r *lifeRow) bool { return r.there() && r.hook == h && r.status == "failed" && !replayed[r] })
	hour := webhooks.NewRecovery{Since: time.Now().Add(-time.Hour)}
	asked, err := l.webhooks.RecoverWebhook(l.ctx, h.id, hour, changes.Request[*db.Recovery]{})
	switch {
	case h.deleted:
		require.True(t, problem.Is(err, problem.NotFound), "%v", err)
		return
	case !h.enabled:
		require.True(t, problem.Is(err, problem.Conflict), "%v", err)
		return
	}
	require.NoError(t, err)
	progress, err := l.webhooks.RecoverNext(l.ctx, asked.ID)
	require.NoError(t, err)
	require.Equal(t, string(recovery.StatusCompleted), progress.Status, "a page has room for all of them")
	made := l.dispatched
	require.Len(t, made, len(failed), "each delivery that failed and wasn't replayed is, once")
	slices.SortFunc(failed, func(a, b *lifeRow) int { return cmp.Compare(a.id.String(), b.id.String()) })
	for i, d := range made {
		l.dispatched = []changes.PendingDelivery{d}
		l.born(failed[i], failed[i].eventType)
	}
}

// toggle disables or enables a webhook. Enabling ends its streak of failures.
func (l *life) toggle(t *rapid.T) {
	h := one(t, "webhooks", where(l.hooks, func(h *lifeHook) bool { return !h.deleted }))
	_, err := l.webhooks.UpdateWebhook(l.ctx, h.id, webhooks.WebhookInput{Enabled: new(!h.enabled)}, changes.Request[*db.Webhook]{})
	require.NoError(t, err)
	if h.enabled = !h.enabled; h.enabled {
		h.failures = 0
	}
}

// followStreaks does the work of the failure_streak runs, and of the sweep for lost runs.
func (l *life) followStreaks(t *rapid.T) {
	var wanted []publicid.Webhook
	for _, h := range l.hooks {
		if !h.deleted && h.enabled && h.failures >= lifeLimit {
			wanted = append(wanted, h.id)
		}
	}
	require.ElementsMatch(t, wanted, failing(t, l.webhooks), "webhooks that failed %d times in a row, or more often", lifeLimit)
	for _, h := range l.hooks {
		_, disabled, err := l.webhooks.DisableFailing(l.ctx, h.id, l.name("streak "))
		require.NoError(t, err)
		require.Equal(t, slices.Contains(wanted, h.id), disabled, "a webhook is disabled after %d failures in a row", lifeLimit)
		h.enabled = h.enabled && !disabled
	}
}

// delete deletes a webhook with its log. If no other webhook receives events, it registers a new
// one.
func (l *life) delete(t *rapid.T) {
	h := one(t, "webhooks", l.hooks)
	err := l.webhooks.DeleteWebhook(l.ctx, h.id, changes.Request[*db.Webhook]{})
	if h.deleted {
		require.True(t, problem.Is(err, problem.NotFound), "%v", err)
		return
	}
	require.NoError(t, err)
	h.deleted = true
	if len(l.wanted()) == 0 {
		l.register()
	}
}

// removeDeleted removes the rows of deleted webhooks page by page. It may stop after one page, as
// if the process was killed.
func (l *life) removeDeleted(t *rapid.T) {
	pages := rapid.SampledFrom([]int{100, 1}).Draw(t, "pages")
	at := new(retention.DeletedPlace)
	for at != nil && pages > 0 {
		_, _, next, err := retention.RemoveDeleted(l.ctx, l.store, *at)
		require.NoError(t, err)
		at = next
		pages--
	}
	if pages == 0 {
		return
	}
	var left int
	err := l.pool.QueryRow(l.ctx, "SELECT count(*) FROM webhooks WHERE deleted_at IS NOT NULL").Scan(&left)
	require.NoError(t, err)
	require.Zero(t, left, "nothing of what was deleted is left behind")
}

// retain runs the retention with a cut-off that removes all deliveries that have ended, or none.
func (l *life) retain(t *rapid.T) {
	all := rapid.Bool().Draw(t, "everything is old")
	olderThan := time.Now().Add(time.Hour)
	if !all {
		olderThan = time.Now().Add(-time.Hour)
	}
	for _, kind := range []retention.Expired{retention.ExpiredDeliveries, retention.ExpiredEvents, retention.ExpiredRecoveries} {
		for next := ""; ; {
			_, after, err := retention.RemoveExpired(l.ctx, l.store, kind, olderThan, next)
			require.NoError(t, err)
			if next = after; next == "" {
				break
			}
		}
	}
	for _, r := range l.rows {
		r.removed = r.removed || all && r.status != "pending"
	}
}
