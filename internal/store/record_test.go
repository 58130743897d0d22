package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

var startedAt = time.Date(2026, 3, 12, 10, 41, 7, 233_000_000, time.UTC)

// success is the result of an attempt that the receiver accepted.
func success(id publicid.Delivery, number int) store.Result {
	return store.Result{
		ID: id, Number: number, StartedAt: startedAt, Duration: 120 * time.Millisecond,
		Response: 204, Body: []byte("\xff\x00ok"),
	}
}

// failure is the result of a failed attempt. Without a delay for a retry, the failure is final.
func failure(id publicid.Delivery, number int, retry ...time.Duration) store.Result {
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
	id := o.delivery()
	o.claim(id, 1)
	o.record(success(id, 1))

	row := o.row(id)
	require.Equal(t, delivery.StatusSucceeded, row.Status)
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
	id := o.delivery()
	o.record(success(id, 1))
	require.Len(t, o.attempts(id), 1)
	a := o.attempts(id)[0]
	require.Equal(t, o.organization, a.OrganizationID)
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
	id := o.delivery()
	r := failure(id, 1, time.Minute)
	r.Response, r.Body, r.Error = 0, nil, "timeout"
	o.record(r)

	a := o.attempts(id)[0]
	require.Nil(t, a.ResponseStatus)
	require.Empty(t, *a.ResponseBody)
	require.Equal(t, "timeout", *a.Error)
	require.Nil(t, o.row(id).LastResponseStatus)
	require.Equal(t, "timeout", *o.row(id).LastError)
}

func TestAFailedAttemptIsDueAgainAfterTheDelay(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	o.claim(id, 1)
	o.record(failure(id, 1, 30*time.Minute))

	row := o.row(id)
	require.Equal(t, delivery.StatusPending, row.Status)
	require.Equal(t, 1, row.AttemptCount)
	require.Equal(t, "http_status", *row.LastError)
	require.Nil(t, row.FailedAt)
	require.Nil(t, row.DeliveredAt)
	require.Nil(t, row.LeaseUntil)
	require.NotNil(t, row.NextAttemptAt)
	// A claim of the attempt that was already made returns the time of the next one.
	due := o.claim(id, 1)
	require.Equal(t, 2, due.Attempt)
	require.Greater(t, due.Delay, 20*time.Minute)
	require.LessOrEqual(t, due.Delay, 30*time.Minute)
	require.True(t, o.claim(id, 2).Granted)
}

func TestASuccessAfterFailuresLeavesNoErrorBehind(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	o.record(failure(id, 1, time.Second))
	o.record(success(id, 2))
	row := o.row(id)
	require.Equal(t, delivery.StatusSucceeded, row.Status)
	require.Equal(t, 2, row.AttemptCount)
	require.Nil(t, row.LastError)
	require.Len(t, o.attempts(id), 2)
}

func TestTheLastFailureEndsTheDelivery(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(4) })
	o.claim(id, 5)
	o.record(failure(id, 5))

	row := o.row(id)
	require.Equal(t, delivery.StatusFailed, row.Status)
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
	id := o.delivery()
	o.record(failure(id, 1, time.Minute))
	o.claim(id, 2)
	o.record(store.Result{ID: id, StartedAt: ago(0), Error: "webhook_disabled"})

	row := o.row(id)
	require.Equal(t, delivery.StatusFailed, row.Status)
	require.Equal(t, "webhook_disabled", *row.LastError)
	require.NotNil(t, row.FailedAt)
	require.Nil(t, row.LeaseUntil)
	require.Nil(t, row.NextAttemptAt)
	// The row still describes the last attempt.
	require.Equal(t, 1, row.AttemptCount)
	require.True(t, startedAt.Equal(*row.LastAttemptAt))
	require.Equal(t, 500, *row.LastResponseStatus)
	require.Equal(t, 120, *row.DurationMs)
	require.Len(t, o.attempts(id), 1)
}

func TestAnAttemptRecordedTwiceIsRecordedOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	for _, first := range o.claimed(success(o.delivery(), 1), failure(o.delivery(), 1), failure(o.delivery(), 1, time.Hour)) {
		o.record(first)
		row, attempts := o.row(first.ID).String(), fmt.Sprint(o.attempts(first.ID))
		second := failure(first.ID, 1, time.Second)
		second.Response, second.Error, second.Lease = 418, "redirect", first.Lease
		o.record(second)
		o.record(first)
		require.Equal(t, row, o.row(first.ID).String())
		require.Equal(t, attempts, fmt.Sprint(o.attempts(first.ID)))
	}
}

// After a lost lease, two runs may make the same attempt and record it in one batch. That must not
// affect the other results of the batch.
func TestAnAttemptRecordedTwiceInOneBatchIsRecordedOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id, neighbour := o.delivery(), o.delivery()
	o.record(success(id, 1), failure(id, 1, time.Hour), success(neighbour, 1))
	require.Len(t, o.attempts(id), 1)
	require.Equal(t, 1, o.row(id).AttemptCount)
	require.Equal(t, delivery.StatusSucceeded, o.row(neighbour).Status)
	require.Equal(t, *o.row(id).LastResponseStatus, *o.attempts(id)[0].ResponseStatus, "row and attempt are of one result")
}

func TestAResultThatIsNotTheNextAttemptsIsDropped(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(2) })
	o.claim(id, 3)
	before := o.row(id)
	for _, number := range []int{1, 2, 4, 5} {
		o.record(success(id, number))
	}
	require.Equal(t, before.String(), o.row(id).String())
	require.Empty(t, o.attempts(id))
}

func TestAResultOfADeliveryThatHasEndedIsDropped(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	disabled := func(id publicid.Delivery) store.Result {
		return store.Result{ID: id, StartedAt: ago(0), Error: "webhook_disabled"}
	}
	delivered, stopped := o.delivery(), o.delivery()
	o.record(success(delivered, 1), disabled(stopped))
	before := []string{o.row(delivered).String(), o.row(stopped).String()}

	o.record(disabled(delivered), success(stopped, 1))
	require.Equal(t, before, []string{o.row(delivered).String(), o.row(stopped).String()})
	require.Empty(t, o.attempts(stopped))
}

// A worker whose database was away for longer than its lease records late, while another worker is
// making the attempt.
func TestAnOutcomeIsDroppedAfterAnotherWorkerHasClaimedTheAttempt(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	late, alone := o.delivery(), o.delivery()
	was, wasAlone := o.claim(late, 1), o.claim(alone, 1)
	expired := ago(time.Minute)
	for _, id := range []publicid.Delivery{late, alone} {
		require.NoError(t, o.update(id).SetLeaseUntil(expired).Exec(o.ctx))
	}
	is := o.claim(late, 1)
	require.True(t, was.Granted && wasAlone.Granted && is.Granted)
	before := o.row(late).String()
	leased := func(r store.Result, until time.Time) store.Result { r.Lease = until; return r }
	_, err := o.store.RecordResults(t.Context(), []store.Result{
		leased(failure(late, 1, time.Minute), expired),
		leased(store.Result{ID: late, StartedAt: ago(0), Error: "webhook_disabled"}, expired),
		leased(success(alone, 1), expired),
	})
	require.NoError(t, err)
	require.Equal(t, before, o.row(late).String(), "the attempt that is under way keeps its lease")
	require.Empty(t, o.attempts(late))
	require.Equal(t, delivery.StatusSucceeded, o.row(alone).Status, "an outcome that nobody else can bring is recorded, late or not")
	_, err = o.store.RecordResults(t.Context(), []store.Result{leased(success(late, 1), is.Lease)})
	require.NoError(t, err)
	require.Equal(t, delivery.StatusSucceeded, o.row(late).Status)
}

func TestAResultForADeletedWebhookIsDropped(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	theirs := another(t, o.store, o.pool)
	gone, alive := o.delivery(), theirs.delivery()
	o.claim(gone, 1)
	require.NoError(t, o.store.Client().Webhook.DeleteOneID(o.webhook).Exec(o.ctx))

	o.record(success(gone, 1), success(alive, 1), store.Result{ID: gone, StartedAt: ago(0), Error: "webhook_disabled"})
	require.Empty(t, o.attempts(gone))
	require.Equal(t, delivery.StatusSucceeded, theirs.row(alive).Status)
}

func TestABatchRecordsForManyOrganizationsEachItsOwn(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	theirs := another(t, o.store, o.pool)
	a, b, c := o.delivery(), theirs.delivery(), o.delivery()
	o.record(success(a, 1), failure(b, 1), failure(c, 1, time.Hour))
	require.Equal(t, delivery.StatusSucceeded, o.row(a).Status)
	require.Equal(t, delivery.StatusFailed, theirs.row(b).Status)
	require.Equal(t, delivery.StatusPending, o.row(c).Status)
	require.Equal(t, theirs.organization, theirs.attempts(b)[0].OrganizationID)
}

func TestNoResultsChangeNothing(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.record()
	id := o.delivery()
	require.Equal(t, delivery.StatusPending, o.row(id).Status)
}

func TestBatchesOfResultsThatOverlapInAnyOrderAreAllRecorded(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	var results []store.Result
	for range 100 {
		results = append(results, success(o.delivery(), 1))
	}
	backwards := slices.Clone(o.claimed(results...))
	slices.Reverse(backwards)
	orders := make(chan []store.Result, 6)
	for range 3 {
		orders <- results
		orders <- backwards
	}
	together(t, 6, func(ctx context.Context) (int, error) {
		_, err := o.store.RecordResults(ctx, <-orders)
		return 0, err
	})
	recorded, err := o.store.Client().Attempt.Query().Count(o.ctx)
	require.NoError(t, err)
	require.Equal(t, len(results), recorded)
}
