package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	deliveryrow "earshot/ent/db/delivery"
	"earshot/internal/delivery"
	"earshot/internal/publicid"
	"earshot/internal/testkit/fixture"
)

func TestAGrantedClaimHasAllThatTheAttemptNeeds(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	claimed := o.Claim(id, 1)
	require.Positive(t, claimed.Age)
	require.Equal(t, *o.Row(id).LeaseUntil, claimed.Lease)
	require.Equal(t, delivery.Claimed{
		Granted: true, Attempt: 1, Webhook: o.Webhook, URL: fixture.HookURL, Enabled: true,
		Sealed: []byte(fixture.Sealed), EventType: "post.created", Payload: []byte(fixture.Payload), Sequence: 1, Age: claimed.Age, Lease: claimed.Lease,
	}, claimed)

	row := o.Row(id)
	require.Equal(t, fixture.Run, *row.WorkflowID)
	require.NotNil(t, row.LeaseUntil)
	require.Equal(t, deliveryrow.StatusPending, row.Status)
	require.Zero(t, row.AttemptCount, "an attempt counts when it is recorded")
}

func TestAnAttemptGoesByTheWebhookAsItIsNow(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	require.NoError(t, o.Store.Client().Webhook.UpdateOneID(o.Webhook).SetURL("https://example.org/moved").Exec(o.Ctx))
	require.Equal(t, "https://example.org/moved", o.Claim(id, 1).URL)
}

func TestAClaimTellsThatTheWebhookIsDisabled(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	require.NoError(t, o.Store.Client().Webhook.UpdateOneID(o.Webhook).SetEnabled(false).Exec(o.Ctx))
	got := o.Claim(id, 1)
	require.True(t, got.Granted)
	require.False(t, got.Enabled)
}

func TestADeliveryWithAValidLeaseIsNotGrantedToAnotherRun(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	require.True(t, o.Claim(id, 1).Granted)

	got := o.ClaimAll(delivery.Claim{ID: id, Number: 1, WorkflowID: "other", Lease: time.Second})[0]
	require.Positive(t, got.Delay)
	require.LessOrEqual(t, got.Delay, fixture.Lease)
	require.Equal(t, delivery.Claimed{Wait: true, Attempt: 1, Delay: got.Delay}, got)
	require.Equal(t, fixture.Run, *o.Row(id).WorkflowID)
}

func TestADeliveryWhoseAttemptDiedIsGrantedAfterItsLease(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	require.True(t, o.Claim(id, 1).Granted)
	require.NoError(t, o.Update(id).SetLeaseUntil(fixture.Ago(time.Minute)).Exec(o.Ctx))

	require.True(t, o.ClaimAll(delivery.Claim{ID: id, Number: 1, WorkflowID: "other", Lease: fixture.Lease})[0].Granted)
	require.Equal(t, "other", *o.Row(id).WorkflowID)
}

func TestARunThatIsBehindIsToldTheNextAttempt(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(2).SetNextAttemptAt(fixture.Ago(-time.Hour)) })
	got := o.Claim(id, 1)
	require.Greater(t, got.Delay, 30*time.Minute)
	require.LessOrEqual(t, got.Delay, 2*time.Hour)
	require.Equal(t, delivery.Claimed{Wait: true, Attempt: 3, Delay: got.Delay}, got)
	require.Nil(t, o.Row(id).LeaseUntil)
}

func TestARunThatIsAheadIsToldTheNextAttempt(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(1).SetNextAttemptAt(fixture.Ago(time.Hour)) })
	require.Equal(t, delivery.Claimed{Wait: true, Attempt: 2}, o.Claim(id, 5))
	require.Nil(t, o.Row(id).LeaseUntil)
}

func TestADeliveryThatHasEndedIsGone(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	for _, status := range []deliveryrow.Status{deliveryrow.StatusSucceeded, deliveryrow.StatusFailed} {
		id := o.Delivery(fixture.Ended(status))
		want := delivery.Claimed{Gone: true, Ended: &delivery.Ended{Failed: status == deliveryrow.StatusFailed, Attempts: 1}}
		require.Equal(t, want, o.Claim(id, 2), status)
		require.Equal(t, want, o.Claim(id, 1), status)
		require.Nil(t, o.Row(id).LeaseUntil)
	}
}

func TestADeliveryWhoseRowIsDeletedIsGone(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	require.NoError(t, o.Store.Client().Webhook.DeleteOneID(o.Webhook).Exec(o.Ctx))
	require.Equal(t, delivery.Claimed{Gone: true}, o.Claim(id, 1))
	require.Equal(t, delivery.Claimed{Gone: true}, o.Claim(publicid.NewDelivery(), 1))
}

func TestAnswersStandInTheOrderOfTheClaims(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	theirs := another(t, o.Store, o.Pool)
	leased := o.Delivery(func(c *db.DeliveryCreate) { c.SetLeaseUntil(fixture.Ago(-time.Hour)) })
	later := o.Delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(3) })
	wanted := []struct {
		id     publicid.Delivery
		answer string
	}{
		{o.Delivery(), "granted"}, {o.Delivery(fixture.Ended(deliveryrow.StatusFailed)), "gone"}, {theirs.Delivery(), "granted"},
		{leased, "wait 1"}, {publicid.NewDelivery(), "gone"}, {later, "wait 4"}, {o.Delivery(), "granted"},
	}
	for _, reverse := range []bool{false, true} {
		if reverse {
			slices.Reverse(wanted)
			_, err := o.Store.Client().Delivery.Update().ClearLeaseUntil().
				Where(deliveryrow.IDNEQ(leased)).Save(fixture.AllRows(t, o.Store))
			require.NoError(t, err)
		}
		var claims []delivery.Claim
		var expected, answers []string
		for _, w := range wanted {
			claims = append(claims, delivery.Claim{ID: w.id, Number: 1, WorkflowID: fixture.Run, Lease: fixture.Lease})
			expected = append(expected, w.answer)
		}
		for _, got := range o.ClaimAll(claims...) {
			answers = append(answers, inWords(got))
		}
		require.Equal(t, expected, answers)
	}
}

func inWords(c delivery.Claimed) string {
	switch {
	case c.Granted && !c.Gone && !c.Wait:
		return "granted"
	case c.Wait && !c.Gone && !c.Granted:
		return fmt.Sprint("wait ", c.Attempt)
	case c.Gone && !c.Wait && !c.Granted:
		return "gone"
	default:
		return fmt.Sprintf("%+v", c)
	}
}

func TestNoClaimsAreNoAnswers(t *testing.T) {
	t.Parallel()
	newOutbox(t).ClaimAll()
}

// A process combines its calls in one batch. A batch can contain a workflow's retry of an activity
// together with the first try.
func TestADeliveryClaimedTwiceInOneBatchIsGrantedOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	c := delivery.Claim{ID: id, Number: 1, WorkflowID: fixture.Run, Lease: fixture.Lease}
	var answers []string
	for _, got := range o.ClaimAll(c, c, delivery.Claim{ID: id, Number: 2, WorkflowID: fixture.Run, Lease: fixture.Lease}) {
		answers = append(answers, inWords(got))
	}
	require.ElementsMatch(t, []string{"granted", "wait 1", "wait 1"}, answers)
	require.Equal(t, "wait 1", answers[2])
}

func TestADeliveryClaimedByManyAtOnceIsGrantedOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.Delivery()
	granted := together(t, 8, func(ctx context.Context) (int, error) {
		return countGranted(delivery.ClaimAll(ctx, o.Store, []delivery.Claim{{ID: id, Number: 1, WorkflowID: fixture.Run, Lease: fixture.Lease}}))
	})
	require.Equal(t, 1, granted)
}

// Two processes may claim the same deliveries in different orders, for example after a restart.
// They must not deadlock.
func TestBatchesThatOverlapInAnyOrderGrantEachDeliveryOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	s := o.Store
	var claims []delivery.Claim
	for range 100 {
		claims = append(claims, delivery.Claim{ID: o.Delivery(), Number: 1, WorkflowID: fixture.Run, Lease: fixture.Lease})
	}
	backwards := slices.Clone(claims)
	slices.Reverse(backwards)
	orders := make(chan []delivery.Claim, 6)
	for range 3 {
		orders <- claims
		orders <- backwards
	}
	granted := together(t, 6, func(ctx context.Context) (int, error) {
		return countGranted(delivery.ClaimAll(ctx, s, <-orders))
	})
	require.Equal(t, len(claims), granted)
}

func countGranted(answers []delivery.Claimed, err error) (int, error) {
	n := 0
	for _, a := range answers {
		if a.Granted {
			n++
		}
	}
	return n, err
}

// together calls fn n times concurrently and returns the sum of the results.
func together(t *testing.T, n int, fn func(context.Context) (int, error)) int {
	t.Helper()
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		total int
		start = make(chan struct{})
	)
	for range n {
		all.Go(func() {
			<-start
			got, err := fn(t.Context())
			mu.Lock()
			defer mu.Unlock()
			total += got
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	all.Wait()
	return total
}
