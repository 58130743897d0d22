package delivery_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	deliveryrow "earshot/ent/db/delivery"
	"earshot/internal/delivery"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/send"
	"earshot/internal/testkit/fixture"
	"earshot/internal/webhooks"
)

// streak is the webhook's streak of failures.
func (o *outbox) streak() int {
	o.T.Helper()
	hook, err := o.Store.Client().Webhook.Get(o.Ctx, o.Webhook)
	require.NoError(o.T, err)
	return hook.ConsecutiveFailures
}

// lost is the result of a delivery that failed for good.
func lost(id publicid.Delivery) delivery.Result {
	r := failure(id, 1)
	r.Counts = true
	return r
}

func TestAStreakGrowsWithEachCountedFailureAndEndsWithASuccess(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	require.Equal(t, []bool{true}, o.Record(lost(o.Delivery())))
	require.Equal(t, []bool{true, true}, o.Record(lost(o.Delivery()), lost(o.Delivery())))
	require.Equal(t, 3, o.streak())
	require.Equal(t, []bool{false}, o.Record(failure(o.Delivery(), 1)), "doesn't count")
	require.Equal(t, 3, o.streak())
	require.Equal(t, []bool{true}, o.Record(success(o.Delivery(), 1)))
	require.Zero(t, o.streak())
}

func TestASuccessWithoutAStreakLeavesTheWebhookAlone(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	before, err := o.Store.Client().Webhook.Get(o.Ctx, o.Webhook)
	require.NoError(t, err)
	require.Equal(t, []bool{false}, o.Record(success(o.Delivery(), 1)))
	after, err := o.Store.Client().Webhook.Get(o.Ctx, o.Webhook)
	require.NoError(t, err)
	require.Equal(t, before.String(), after.String())
}

func TestTheOutcomesOfABatchCountInItsOrder(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.Record(lost(o.Delivery()), lost(o.Delivery()))
	o.Record(lost(o.Delivery()), success(o.Delivery(), 1), lost(o.Delivery()))
	require.Equal(t, 1, o.streak())
	o.Record(lost(o.Delivery()), success(o.Delivery(), 1))
	require.Zero(t, o.streak())
}

func TestAFailureThatIsRecordedTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	require.Equal(t, []bool{true}, o.Record(lost(id)))
	require.Equal(t, []bool{false}, o.Record(lost(id)))
	require.Equal(t, 1, o.streak())
	o.Record(lost(o.Delivery()), lost(o.Delivery()))
	require.Equal(t, 3, o.streak())
}

func TestFailuresOfManyProcessesAllCount(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	other := another(t, o.Store, o.Pool)
	const batches = 24
	orders := make(chan []delivery.Result, batches)
	for range batches {
		// Both webhooks, in either order.
		batch := o.Claimed(lost(o.Delivery()), lost(other.Delivery()))
		if len(orders)%2 == 0 {
			batch[0], batch[1] = batch[1], batch[0]
		}
		orders <- batch
	}
	together(t, batches, func(ctx context.Context) (int, error) {
		_, err := delivery.Record(ctx, o.Store, <-orders)
		return 0, err
	})
	require.Equal(t, batches, o.streak())
	require.Equal(t, batches, other.streak())
}

func TestAClaimOfADeliveryThatHasEndedSaysHow(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	o.Claim(id, 1)
	o.Record(lost(id))
	got := o.Claim(id, 1)
	require.True(t, got.Gone)
	require.Equal(t, &delivery.Ended{Failed: true, Attempts: 1, Response: 500, Error: "http_status"}, got.Ended)
	require.Nil(t, o.Claim(publicid.NewDelivery(), 1).Ended, "there is no such row")
}

func TestADeliveryThatFailedBeginsItsScheduleAnewForAnotherRun(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	kept := o.Delivery(fixture.Ended(deliveryrow.StatusSucceeded))
	id := o.Delivery()
	for n := 1; n <= 5; n++ {
		r := failure(id, n)
		if n < 5 {
			r = failure(id, n, 0)
		}
		o.ClaimAll(delivery.Claim{ID: id, Number: n, WorkflowID: fixture.Run, RunID: "first", Lease: fixture.Lease})
		o.Record(r)
	}
	revive := func(run string) []delivery.Revived {
		found, err := delivery.Revive(t.Context(), o.Store, run, []publicid.Delivery{kept, id})
		require.NoError(t, err)
		return found
	}
	require.Empty(t, revive("first"), "it failed in this very run")
	want := []delivery.Revived{{ID: id, Webhook: o.Webhook, Attempts: 5}}
	require.Equal(t, want, revive("second"))
	require.Equal(t, want, revive("second"), "asked again after a kill")
	row := o.Row(id)
	require.Equal(t, deliveryrow.StatusPending, row.Status)
	require.Nil(t, row.FailedAt)
	got := o.Claim(id, 6)
	require.True(t, got.Granted)
	require.Equal(t, 5, got.ScheduleStart)
	require.Equal(t, deliveryrow.StatusSucceeded, o.Row(kept).Status)
}

func TestADeliveryThatIsGivenUpAndRevivedDuringAnAttemptIsNotAttemptedBesideIt(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	first := o.Claim(id, 1)
	n, err := delivery.End(t.Context(), o.Store, "first", "given_up", []publicid.Delivery{id})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = delivery.Revive(t.Context(), o.Store, "second", []publicid.Delivery{id})
	require.NoError(t, err)
	require.True(t, o.Claim(id, 1).Wait, "the first attempt is under way")
	result := success(id, 1)
	result.Lease = first.Lease
	o.Record(result)
	require.Equal(t, deliveryrow.StatusSucceeded, o.Row(id).Status, "and is the one that counts")
}

func TestALeasedDeliveryOrOneOfAnotherRunIsNotAbandoned(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	never, own, flying, others := o.Delivery(), o.Delivery(), o.Delivery(), o.Delivery()
	over := o.Delivery(fixture.Ended(deliveryrow.StatusFailed))
	o.Claim(flying, 1)
	require.NoError(t, o.Update(own).SetWorkflowID(fixture.Run).Exec(o.Ctx))
	require.NoError(t, o.Update(others).SetWorkflowID("dlv_other").Exec(o.Ctx))
	found, err := delivery.Abandoned(t.Context(), o.Store, []delivery.Followed{
		{WorkflowID: fixture.Run, ID: never}, {WorkflowID: fixture.Run, ID: own}, {WorkflowID: fixture.Run, ID: flying}, {WorkflowID: fixture.Run, ID: others},
		{WorkflowID: fixture.Run, ID: over}, {WorkflowID: "dlv_third", ID: own},
	})
	require.NoError(t, err)
	require.ElementsMatch(t, []delivery.Followed{{WorkflowID: fixture.Run, ID: never}, {WorkflowID: fixture.Run, ID: own}}, found)
}

func TestTheSweepFindsWebhooksThatShouldBeDisabled(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	set := func(failures int, enabled bool) publicid.Webhook {
		h, err := o.Store.Client().Webhook.Create().SetURL(fixture.HookURL).SetEvents([]string{"post.created"}).
			SetSecretSealed([]byte(fixture.Sealed)).SetConsecutiveFailures(failures).SetEnabled(enabled).Save(o.Ctx)
		require.NoError(t, err)
		return h.ID
	}
	set(49, true)
	set(50, false)
	due, overdue := set(50, true), set(51, true)
	require.ElementsMatch(t, []publicid.Webhook{due, overdue}, failing(t, newWebhooks(o.Store)))
}

func newWebhooks(s *postgres.DB) *webhooks.Service {
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
