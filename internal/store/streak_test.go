package store_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/delivery"
	"earshot/internal/jobs"
	"earshot/internal/publicid"
	"earshot/internal/send"
	"earshot/internal/store"
	"earshot/internal/webhooks"
)

// streak is the webhook's streak of failures.
func (o *outbox) streak() int {
	o.t.Helper()
	hook, err := o.store.Client().Webhook.Get(o.ctx, o.webhook)
	require.NoError(o.t, err)
	return hook.ConsecutiveFailures
}

// lost is the result of a delivery that failed for good.
func lost(id publicid.Delivery) store.Result {
	r := failure(id, 1)
	r.Counts = true
	return r
}

func TestAStreakGrowsWithEachCountedFailureAndEndsWithASuccess(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	require.Equal(t, []bool{true}, o.record(lost(o.delivery())))
	require.Equal(t, []bool{true, true}, o.record(lost(o.delivery()), lost(o.delivery())))
	require.Equal(t, 3, o.streak())
	require.Equal(t, []bool{false}, o.record(failure(o.delivery(), 1)), "doesn't count")
	require.Equal(t, 3, o.streak())
	require.Equal(t, []bool{true}, o.record(success(o.delivery(), 1)))
	require.Zero(t, o.streak())
}

func TestASuccessWithoutAStreakLeavesTheWebhookAlone(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	before, err := o.store.Client().Webhook.Get(o.ctx, o.webhook)
	require.NoError(t, err)
	require.Equal(t, []bool{false}, o.record(success(o.delivery(), 1)))
	after, err := o.store.Client().Webhook.Get(o.ctx, o.webhook)
	require.NoError(t, err)
	require.Equal(t, before.String(), after.String())
}

func TestTheOutcomesOfABatchCountInItsOrder(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.record(lost(o.delivery()), lost(o.delivery()))
	o.record(lost(o.delivery()), success(o.delivery(), 1), lost(o.delivery()))
	require.Equal(t, 1, o.streak())
	o.record(lost(o.delivery()), success(o.delivery(), 1))
	require.Zero(t, o.streak())
}

func TestAFailureThatIsRecordedTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	require.Equal(t, []bool{true}, o.record(lost(id)))
	require.Equal(t, []bool{false}, o.record(lost(id)))
	require.Equal(t, 1, o.streak())
	o.record(lost(o.delivery()), lost(o.delivery()))
	require.Equal(t, 3, o.streak())
}

func TestFailuresOfManyProcessesAllCount(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	other := another(t, o.store, o.pool)
	const batches = 24
	orders := make(chan []store.Result, batches)
	for range batches {
		// Both webhooks, in either order.
		batch := o.claimed(lost(o.delivery()), lost(other.delivery()))
		if len(orders)%2 == 0 {
			batch[0], batch[1] = batch[1], batch[0]
		}
		orders <- batch
	}
	together(t, batches, func(ctx context.Context) (int, error) {
		_, err := o.store.RecordResults(ctx, <-orders)
		return 0, err
	})
	require.Equal(t, batches, o.streak())
	require.Equal(t, batches, other.streak())
}

func TestAClaimOfADeliveryThatHasEndedSaysHow(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	o.claim(id, 1)
	o.record(lost(id))
	got := o.claim(id, 1)
	require.True(t, got.Gone)
	require.Equal(t, &store.Ended{Failed: true, Attempts: 1, Response: 500, Error: "http_status"}, got.Ended)
	require.Nil(t, o.claim(publicid.NewDelivery(), 1).Ended, "there is no such row")
}

func TestADeliveryThatFailedBeginsItsScheduleAnewForAnotherRun(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	kept := o.delivery(ended(delivery.StatusSucceeded))
	id := o.delivery()
	for n := 1; n <= 5; n++ {
		r := failure(id, n)
		if n < 5 {
			r = failure(id, n, 0)
		}
		o.claimAll(store.Claim{ID: id, Number: n, WorkflowID: run, RunID: "first", Lease: lease})
		o.record(r)
	}
	revive := func(run string) []store.Revived {
		found, err := o.store.ReviveDeliveries(t.Context(), run, []publicid.Delivery{kept, id})
		require.NoError(t, err)
		return found
	}
	require.Empty(t, revive("first"), "it failed in this very run")
	want := []store.Revived{{ID: id, Webhook: o.webhook, Attempts: 5}}
	require.Equal(t, want, revive("second"))
	require.Equal(t, want, revive("second"), "asked again after a kill")
	row := o.row(id)
	require.Equal(t, delivery.StatusPending, row.Status)
	require.Nil(t, row.FailedAt)
	got := o.claim(id, 6)
	require.True(t, got.Granted)
	require.Equal(t, 5, got.ScheduleStart)
	require.Equal(t, delivery.StatusSucceeded, o.row(kept).Status)
}

func TestADeliveryThatIsGivenUpAndRevivedDuringAnAttemptIsNotAttemptedBesideIt(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	first := o.claim(id, 1)
	n, err := o.store.EndDeliveries(t.Context(), "first", "given_up", []publicid.Delivery{id})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = o.store.ReviveDeliveries(t.Context(), "second", []publicid.Delivery{id})
	require.NoError(t, err)
	require.True(t, o.claim(id, 1).Wait, "the first attempt is under way")
	result := success(id, 1)
	result.Lease = first.Lease
	o.record(result)
	require.Equal(t, delivery.StatusSucceeded, o.row(id).Status, "and is the one that counts")
}

func TestALeasedDeliveryOrOneOfAnotherRunIsNotAbandoned(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	never, own, flying, others := o.delivery(), o.delivery(), o.delivery(), o.delivery()
	over := o.delivery(ended(delivery.StatusFailed))
	o.claim(flying, 1)
	require.NoError(t, o.update(own).SetWorkflowID(run).Exec(o.ctx))
	require.NoError(t, o.update(others).SetWorkflowID("dlv_other").Exec(o.ctx))
	found, err := o.store.Abandoned(t.Context(), []store.Followed{
		{WorkflowID: run, ID: never}, {WorkflowID: run, ID: own}, {WorkflowID: run, ID: flying}, {WorkflowID: run, ID: others},
		{WorkflowID: run, ID: over}, {WorkflowID: "dlv_third", ID: own},
	})
	require.NoError(t, err)
	require.ElementsMatch(t, []store.Followed{{WorkflowID: run, ID: never}, {WorkflowID: run, ID: own}}, found)
}

func TestTheSweepFindsWebhooksThatShouldBeDisabled(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	set := func(failures int, enabled bool) publicid.Webhook {
		h, err := o.store.Client().Webhook.Create().SetURL(hookURL).SetEvents([]string{"post.created"}).
			SetSecretSealed([]byte(sealed)).SetConsecutiveFailures(failures).SetEnabled(enabled).Save(o.ctx)
		require.NoError(t, err)
		return h.ID
	}
	set(49, true)
	set(50, false)
	due, overdue := set(50, true), set(51, true)
	require.ElementsMatch(t, []publicid.Webhook{due, overdue}, failing(t, newWebhooks(o.store)))
}

func newWebhooks(s *store.Store) *webhooks.Service {
	return webhooks.New(s, nil, send.NewGuard(nil, false), nil, webhooks.Settings{}, slog.New(slog.DiscardHandler))
}

// failing returns the webhooks whose streak the sweep would end.
func failing(t require.TestingT, s *webhooks.Service) (found []publicid.Webhook) {
	rows, err := s.SweepStreaks().Rows(context.Background(), 0, jobs.Overdue{}, 100)
	require.NoError(t, err)
	for _, r := range rows {
		found = append(found, r.Request.Webhook)
	}
	return found
}
