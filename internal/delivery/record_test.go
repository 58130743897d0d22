package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	deliveryrow "earshot/ent/db/delivery"
	"earshot/internal/delivery"
	"earshot/internal/publicid"
	"earshot/internal/testkit/fixture"
)

var startedAt = time.Date(2026, 3, 12, 10, 41, 7, 233_000_000, time.UTC)

// success is the result of an attempt that the receiver accepted.
func success(id publicid.Delivery, number int) delivery.Result {
	return delivery.Result{
		ID: id, Number: number, StartedAt: startedAt, Duration: 120 * time.Millisecond,
		Response: 204, Body: []byte("\xff\x00ok"),
	}
}

// failure is the result of a failed attempt. Without a delay for a retry, the failure is final.
func failure(id publicid.Delivery, number int, retry ...time.Duration) delivery.Result {
	r := success(id, number)
	r.Response, r.Error = 500, "http_status"
	if len(retry) > 0 {
		r.Retry = &retry[0]
	}
	return r
}

func TestASuccessEndsTheDelivery(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	o.Claim(id, 1)
	o.Record(success(id, 1))

	row := o.Row(id)
	require.Equal(t, deliveryrow.StatusSucceeded, row.Status)
	require.Equal(t, 1, row.AttemptCount)
	require.NotNil(t, row.DeliveredAt)
	require.Nil(t, row.FailedAt)
	require.Nil(t, row.NextAttemptAt)
	require.Nil(t, row.LeaseUntil)
	require.Nil(t, row.LastError)
	require.Equal(t, 204, *row.LastResponseStatus)
	require.Equal(t, 120, *row.DurationMs)
	require.True(t, startedAt.Equal(*row.LastAttemptAt))
}

func TestAnAttemptIsKeptAsItWasMade(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	o.Record(success(id, 1))
	require.Len(t, o.Attempts(id), 1)
	a := o.Attempts(id)[0]
	require.Equal(t, o.Organization, a.OrganizationID)
	require.Equal(t, 1, a.Number)
	require.True(t, startedAt.Equal(a.StartedAt))
	require.Equal(t, 120, a.DurationMs)
	require.Equal(t, 204, *a.ResponseStatus)
	require.Equal(t, []byte("\xff\x00ok"), *a.ResponseBody)
	require.Nil(t, a.Error)
}

func TestAnAttemptWithoutAnAnswerHasNoStatusAndNoBody(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	r := failure(id, 1, time.Minute)
	r.Response, r.Body, r.Error = 0, nil, "timeout"
	o.Record(r)

	a := o.Attempts(id)[0]
	require.Nil(t, a.ResponseStatus)
	require.Empty(t, *a.ResponseBody)
	require.Equal(t, "timeout", *a.Error)
	require.Nil(t, o.Row(id).LastResponseStatus)
	require.Equal(t, "timeout", *o.Row(id).LastError)
}

func TestAFailedAttemptIsDueAgainAfterTheDelay(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	o.Claim(id, 1)
	o.Record(failure(id, 1, 30*time.Minute))

	row := o.Row(id)
	require.Equal(t, deliveryrow.StatusPending, row.Status)
	require.Equal(t, 1, row.AttemptCount)
	require.Equal(t, "http_status", *row.LastError)
	require.Nil(t, row.FailedAt)
	require.Nil(t, row.DeliveredAt)
	require.Nil(t, row.LeaseUntil)
	require.NotNil(t, row.NextAttemptAt)
	// A claim of the attempt that was already made returns the time of the next one.
	due := o.Claim(id, 1)
	require.Equal(t, 2, due.Attempt)
	require.Greater(t, due.Delay, 20*time.Minute)
	require.LessOrEqual(t, due.Delay, 30*time.Minute)
	require.True(t, o.Claim(id, 2).Granted)
}

func TestASuccessAfterFailuresLeavesNoErrorBehind(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	o.Record(failure(id, 1, time.Second))
	o.Record(success(id, 2))
	row := o.Row(id)
	require.Equal(t, deliveryrow.StatusSucceeded, row.Status)
	require.Equal(t, 2, row.AttemptCount)
	require.Nil(t, row.LastError)
	require.Len(t, o.Attempts(id), 2)
}

func TestTheLastFailureEndsTheDelivery(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(4) })
	o.Claim(id, 5)
	o.Record(failure(id, 5))

	row := o.Row(id)
	require.Equal(t, deliveryrow.StatusFailed, row.Status)
	require.Equal(t, 5, row.AttemptCount)
	require.NotNil(t, row.FailedAt)
	require.Nil(t, row.DeliveredAt)
	require.Nil(t, row.NextAttemptAt)
	require.Nil(t, row.LeaseUntil)
	require.Equal(t, "http_status", *row.LastError)
}

func TestADeliveryToADisabledWebhookEndsWithoutAnAttempt(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	o.Record(failure(id, 1, time.Minute))
	o.Claim(id, 2)
	o.Record(delivery.Result{ID: id, StartedAt: fixture.Ago(0), Error: "webhook_disabled"})

	row := o.Row(id)
	require.Equal(t, deliveryrow.StatusFailed, row.Status)
	require.Equal(t, "webhook_disabled", *row.LastError)
	require.NotNil(t, row.FailedAt)
	require.Nil(t, row.LeaseUntil)
	require.Nil(t, row.NextAttemptAt)
	// The row still describes the last attempt.
	require.Equal(t, 1, row.AttemptCount)
	require.True(t, startedAt.Equal(*row.LastAttemptAt))
	require.Equal(t, 500, *row.LastResponseStatus)
	require.Equal(t, 120, *row.DurationMs)
	require.Len(t, o.Attempts(id), 1)
}

func TestAnAttemptRecordedTwiceIsRecordedOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	for _, first := range o.Claimed(success(o.Delivery(), 1), failure(o.Delivery(), 1), failure(o.Delivery(), 1, time.Hour)) {
		o.Record(first)
		row, attempts := o.Row(first.ID).String(), fmt.Sprint(o.Attempts(first.ID))
		second := failure(first.ID, 1, time.Second)
		second.Response, second.Error, second.Lease = 418, "redirect", first.Lease
		o.Record(second)
		o.Record(first)
		require.Equal(t, row, o.Row(first.ID).String())
		require.Equal(t, attempts, fmt.Sprint(o.Attempts(first.ID)))
	}
}

// After a lost lease, two runs may make the same attempt and record it in one batch. That must not
// affect the other results of the batch.
func TestAnAttemptRecordedTwiceInOneBatchIsRecordedOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id, neighbour := o.Delivery(), o.Delivery()
	o.Record(success(id, 1), failure(id, 1, time.Hour), success(neighbour, 1))
	require.Len(t, o.Attempts(id), 1)
	require.Equal(t, 1, o.Row(id).AttemptCount)
	require.Equal(t, deliveryrow.StatusSucceeded, o.Row(neighbour).Status)
	require.Equal(t, *o.Row(id).LastResponseStatus, *o.Attempts(id)[0].ResponseStatus, "row and attempt are of one result")
}

func TestAResultThatIsNotTheNextAttemptsIsDropped(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(2) })
	o.Claim(id, 3)
	before := o.Row(id)
	for _, number := range []int{1, 2, 4, 5} {
		o.Record(success(id, number))
	}
	require.Equal(t, before.String(), o.Row(id).String())
	require.Empty(t, o.Attempts(id))
}

func TestAResultOfADeliveryThatHasEndedIsDropped(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	disabled := func(id publicid.Delivery) delivery.Result {
		return delivery.Result{ID: id, StartedAt: fixture.Ago(0), Error: "webhook_disabled"}
	}
	delivered, stopped := o.Delivery(), o.Delivery()
	o.Record(success(delivered, 1), disabled(stopped))
	before := []string{o.Row(delivered).String(), o.Row(stopped).String()}

	o.Record(disabled(delivered), success(stopped, 1))
	require.Equal(t, before, []string{o.Row(delivered).String(), o.Row(stopped).String()})
	require.Empty(t, o.Attempts(stopped))
}

// A worker whose database was away for longer than its lease records late, while another worker is
// making the attempt.
func TestAnOutcomeIsDroppedAfterAnotherWorkerHasClaimedTheAttempt(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	late, alone := o.Delivery(), o.Delivery()
	was, wasAlone := o.Claim(late, 1), o.Claim(alone, 1)
	expired := fixture.Ago(time.Minute)
	for _, id := range []publicid.Delivery{late, alone} {
		require.NoError(t, o.Update(id).SetLeaseUntil(expired).Exec(o.Ctx))
	}
	is := o.Claim(late, 1)
	require.True(t, was.Granted && wasAlone.Granted && is.Granted)
	before := o.Row(late).String()
	leased := func(r delivery.Result, until time.Time) delivery.Result { r.Lease = until; return r }
	_, err := delivery.Record(t.Context(), o.Store, []delivery.Result{
		leased(failure(late, 1, time.Minute), expired),
		leased(delivery.Result{ID: late, StartedAt: fixture.Ago(0), Error: "webhook_disabled"}, expired),
		leased(success(alone, 1), expired),
	})
	require.NoError(t, err)
	require.Equal(t, before, o.Row(late).String(), "the attempt that is under way keeps its lease")
	require.Empty(t, o.Attempts(late))
	require.Equal(t, deliveryrow.StatusSucceeded, o.Row(alone).Status, "an outcome that nobody else can bring is recorded, late or not")
	_, err = delivery.Record(t.Context(), o.Store, []delivery.Result{leased(success(late, 1), is.Lease)})
	require.NoError(t, err)
	require.Equal(t, deliveryrow.StatusSucceeded, o.Row(late).Status)
}

func TestAResultForADeletedWebhookIsDropped(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	theirs := another(t, o.Store, o.Pool)
	gone, alive := o.Delivery(), theirs.Delivery()
	o.Claim(gone, 1)
	require.NoError(t, o.Store.Client().Webhook.DeleteOneID(o.Webhook).Exec(o.Ctx))

	o.Record(success(gone, 1), success(alive, 1), delivery.Result{ID: gone, StartedAt: fixture.Ago(0), Error: "webhook_disabled"})
	require.Empty(t, o.Attempts(gone))
	require.Equal(t, deliveryrow.StatusSucceeded, theirs.Row(alive).Status)
}

func TestABatchRecordsForManyOrganizationsEachItsOwn(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	theirs := another(t, o.Store, o.Pool)
	a, b, c := o.Delivery(), theirs.Delivery(), o.Delivery()
	o.Record(success(a, 1), failure(b, 1), failure(c, 1, time.Hour))
	require.Equal(t, deliveryrow.StatusSucceeded, o.Row(a).Status)
	require.Equal(t, deliveryrow.StatusFailed, theirs.Row(b).Status)
	require.Equal(t, deliveryrow.StatusPending, o.Row(c).Status)
	require.Equal(t, theirs.Organization, theirs.Attempts(b)[0].OrganizationID)
}

func TestNoResultsChangeNothing(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.Record()
	id := o.Delivery()
	require.Equal(t, deliveryrow.StatusPending, o.Row(id).Status)
}

func TestBatchesOfResultsThatOverlapInAnyOrderAreAllRecorded(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	var results []delivery.Result
	for range 100 {
		results = append(results, success(o.Delivery(), 1))
	}
	backwards := slices.Clone(o.Claimed(results...))
	slices.Reverse(backwards)
	orders := make(chan []delivery.Result, 6)
	for range 3 {
		orders <- results
		orders <- backwards
	}
	together(t, 6, func(ctx context.Context) (int, error) {
		_, err := delivery.Record(ctx, o.Store, <-orders)
		return 0, err
	})
	recorded, err := o.Store.Client().Attempt.Query().Count(o.Ctx)
	require.NoError(t, err)
	require.Equal(t, len(results), recorded)
}
