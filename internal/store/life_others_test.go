package store_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"earshot/ent/db/recovery"
	changes "earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
	"earshot/internal/webhooks"
)

// happen is a change with an event, whose deliveries are in its transaction.
func (l *life) happen(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		err := l.changes.Run(l.ctx, func(c *changes.Change) error {
			return c.Record(event.PostCreated, &event.PostCreatedPayload{Post: event.Post{Title: l.name("post ")}})
		})
		require.NoError(t, err)
		require.ElementsMatch(t, l.wanted(), webhooksOf(l.dispatched), "an event goes once to each webhook that wants it")
		l.born(nil, "post.created")
	}
}

// pass lets time go by.
func (l *life) pass(t *rapid.T) {
	l.move(t, time.Duration(rapid.SampledFrom([]int{5, 13, 31, 45, 121, 3700}).Draw(t, "minutes"))*time.Minute)
}

// passToNext lets time go by until the next run wants an attempt.
func (l *life) passToNext(t *rapid.T) {
	now := l.now()
	waiting := where(l.runs, func(r *lifeRun) bool { return !r.busy && r.due.After(now) })
	if len(waiting) == 0 {
		t.Skip("nobody waits")
	}
	next := slices.MinFunc(waiting, func(a, b *lifeRun) int { return a.due.Compare(b.due) })
	l.move(t, next.due.Sub(now).Truncate(time.Second)+time.Second) // Postgres has no nanoseconds
}

// move moves the moments of all rows back, and by so much more that none is too near.
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

// sweep reads what is overdue page by page and starts what has no open run.
func (l *life) sweep(t *rapid.T) {
	now := l.now()
	overdue := where(l.rows, func(r *lifeRow) bool { return r.claimable(now) && r.due.Add(lifeGrace).Before(now) })
	limit := rapid.IntRange(1, 5).Draw(t, "page")
	var found []publicid.Delivery
	for last := (store.Overdue{}); ; {
		rows, err := l.store.OverdueDeliveries(l.ctx, lifeGrace, last, limit)
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

// lose has Temporal forget a run.
func (l *life) lose(t *rapid.T) { l.drop(one(t, "runs", l.runs)) }

// terminate is an operator's, without a word to the run.
func (l *life) terminate(t *rapid.T) {
	run := one(t, "runs", l.runs)
	l.drop(run)
	l.terminated = append(l.terminated, run)
}

// endTerminated ends the deliveries of runs that were terminated, unless somebody else
// has taken them on.
func (l *life) endTerminated(t *rapid.T) {
	run := one(t, "terminated runs", l.terminated)
	now := l.now()
	abandoned, err := l.store.Abandoned(l.ctx, []store.Followed{{WorkflowID: run.workflow, ID: run.row.id}})
	require.NoError(t, err)
	r := run.row
	require.Equal(t, r.claimable(now) && (r.workflow == "" || r.workflow == run.workflow), len(abandoned) == 1)
	if len(abandoned) == 1 && !l.open(run.workflow) {
		l.giveUpRows(t, "", r)
	}
	l.terminated = where(l.terminated, func(other *lifeRun) bool { return other != run })
}

func (l *life) giveUpRows(t *rapid.T, run string, r *lifeRow) {
	n, err := l.store.EndDeliveries(l.ctx, run, "given_up", []publicid.Delivery{r.id})
	require.NoError(t, err)
	require.Equal(t, r.pending(), n == 1, "what is pending is given up, and nothing else")
	if n == 1 {
		r.fail("given_up")
		r.run = cmp.Or(run, r.run)
	}
}

func (l *life) idle() []*lifeRun { return where(l.runs, func(r *lifeRun) bool { return !r.busy }) }

// retryNow is an operator's update of a run.
func (l *life) retryNow(t *rapid.T) { one(t, "runs that wait", l.idle()).due = l.now() }

// giveUp is an operator's update or cancellation of a run.
func (l *life) giveUp(t *rapid.T) {
	run := one(t, "runs that wait", l.idle())
	l.giveUpRows(t, run.id, run.row)
	l.end(run)
}

// reset is an operator's: another run of the same workflow revives what failed before.
func (l *life) reset(t *rapid.T) {
	old := one(t, "runs that are over", where(l.over, func(r *lifeRun) bool { return !l.open(r.workflow) }))
	run, r := &lifeRun{workflow: old.workflow, id: l.name("run "), row: old.row}, old.row
	for range rapid.IntRange(1, 2).Draw(t, "times") {
		if revives := r.there() && r.status == "failed"; revives {
			r.status, r.start, r.due = "pending", len(r.attempts), l.now()
		}
		got, err := l.store.ReviveDeliveries(l.ctx, run.id, []publicid.Delivery{r.id})
		require.NoError(t, err)
		if !r.pending() {
			require.Empty(t, got)
			return
		}
		require.Equal(t, []store.Revived{{ID: r.id, Webhook: r.hook.id, Attempts: len(r.attempts)}}, got)
	}
	run.number, run.due = len(r.attempts)+1, l.now()
	l.runs = append(l.runs, run)
}

// sent holds the refusals of a replay against the model and takes in what was made.
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
	_, err := l.webhooks.ReplayDelivery(l.ctx, r.hook.id, r.id)
	l.sent(t, r, err)
}

// replayAs is the operator's workflow, which may ask twice.
func (l *life) replayAs(t *rapid.T) {
	r := one(t, "deliveries", l.rows)
	as := publicid.NewDelivery()
	err := l.webhooks.ReplayAs(l.ctx, r.id, as)
	l.sent(t, r, err)
	if err == nil {
		require.NoError(t, l.webhooks.ReplayAs(l.ctx, r.id, as))
		l.dispatched = nil // of a row that was there
	}
}

// recover replays what failed for good and wasn't replayed, once.
func (l *life) recover(t *rapid.T) {
	h := one(t, "webhooks", l.hooks)
	replayed := map[*lifeRow]bool{}
	for _, r := range l.rows {
		if r.there() {
			replayed[r.replayOf] = true
		}
	}
	failed := where(l.rows, func(r *lifeRow) bool { return r.there() && r.hook == h && r.status == "failed" && !replayed[r] })
	asked, err := l.webhooks.RecoverWebhook(l.ctx, h.id, webhooks.NewRecovery{Since: time.Now().Add(-time.Hour)})
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

// toggle disables a webhook, or enables it, which ends its streak.
func (l *life) toggle(t *rapid.T) {
	h := one(t, "webhooks", where(l.hooks, func(h *lifeHook) bool { return !h.deleted }))
	_, err := l.webhooks.UpdateWebhook(l.ctx, h.id, webhooks.WebhookInput{Enabled: new(!h.enabled)})
	require.NoError(t, err)
	if h.enabled = !h.enabled; h.enabled {
		h.failures = 0
	}
}

// followStreaks is what the runs of failure_streak do, and the sweep for those that were
// lost.
func (l *life) followStreaks(t *rapid.T) {
	var wanted []publicid.Webhook
	for _, h := range l.hooks {
		if !h.deleted && h.enabled && h.failures >= lifeLimit {
			wanted = append(wanted, h.id)
		}
	}
	found, err := l.store.FailingWebhooks(l.ctx, webhooks.MaxConsecutiveFailures)
	require.NoError(t, err)
	require.ElementsMatch(t, wanted, found, "webhooks that failed %d times in a row, or more often", lifeLimit)
	for _, h := range l.hooks {
		_, disabled, err := l.webhooks.DisableFailing(l.ctx, h.id, l.name("streak "))
		require.NoError(t, err)
		require.Equal(t, slices.Contains(wanted, h.id), disabled, "a webhook is disabled after %d failures in a row", lifeLimit)
		h.enabled = h.enabled && !disabled
	}
}

// delete takes a webhook away with its log, and another may take its place.
func (l *life) delete(t *rapid.T) {
	h := one(t, "webhooks", l.hooks)
	err := l.webhooks.DeleteWebhook(l.ctx, h.id)
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

// removeDeleted removes page by page what was deleted, and stops after some pages, as
// killed.
func (l *life) removeDeleted(t *rapid.T) {
	pages := rapid.SampledFrom([]int{100, 1}).Draw(t, "pages")
	at := new(store.DeletedPlace)
	for at != nil && pages > 0 {
		_, _, next, err := l.store.RemoveDeleted(l.ctx, *at)
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

// retain removes what is older than a moment: of everything what has ended, or nothing.
func (l *life) retain(t *rapid.T) {
	all := rapid.Bool().Draw(t, "everything is old")
	olderThan := time.Now().Add(time.Hour)
	if !all {
		olderThan = time.Now().Add(-time.Hour)
	}
	for _, kind := range []store.Expired{store.ExpiredDeliveries, store.ExpiredEvents, store.ExpiredRecoveries} {
		for next := ""; ; {
			_, after, err := l.store.RemoveExpired(l.ctx, kind, olderThan, next)
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
