package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

func TestAGrantedClaimHasAllThatTheAttemptNeeds(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	claimed := o.claim(id, 1)
	require.Positive(t, claimed.Age)
	require.Equal(t, *o.row(id).LeaseUntil, claimed.Lease)
	require.Equal(t, store.Claimed{
		Granted: true, Attempt: 1, Webhook: o.webhook, URL: hookURL, Enabled: true,
		Sealed: []byte(sealed), EventType: "post.created", Payload: []byte(payload), Sequence: 1, Age: claimed.Age, Lease: claimed.Lease,
	}, claimed)

	row := o.row(id)
	require.Equal(t, run, *row.WorkflowID)
	require.NotNil(t, row.LeaseUntil)
	require.Equal(t, delivery.StatusPending, row.Status)
	require.Zero(t, row.AttemptCount, "an attempt counts when it is recorded")
}

func TestAnAttemptGoesByTheWebhookAsItIsNow(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	require.NoError(t, o.store.Client().Webhook.UpdateOneID(o.webhook).SetURL("https://example.org/moved").Exec(o.ctx))
	require.Equal(t, "https://example.org/moved", o.claim(id, 1).URL)
}

func TestAClaimTellsThatTheWebhookIsDisabled(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	require.NoError(t, o.store.Client().Webhook.UpdateOneID(o.webhook).SetEnabled(false).Exec(o.ctx))
	got := o.claim(id, 1)
	require.True(t, got.Granted)
	require.False(t, got.Enabled)
}

func TestADeliveryWithAValidLeaseIsNotGrantedToAnotherRun(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	require.True(t, o.claim(id, 1).Granted)

	got := o.claimAll(store.Claim{ID: id, Number: 1, WorkflowID: "other", Lease: time.Second})[0]
	require.Positive(t, got.Delay)
	require.LessOrEqual(t, got.Delay, lease)
	require.Equal(t, store.Claimed{Wait: true, Attempt: 1, Delay: got.Delay}, got)
	require.Equal(t, run, *o.row(id).WorkflowID)
}

func TestADeliveryWhoseAttemptDiedIsGrantedAfterItsLease(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	require.True(t, o.claim(id, 1).Granted)
	require.NoError(t, o.update(id).SetLeaseUntil(ago(time.Minute)).Exec(o.ctx))

	require.True(t, o.claimAll(store.Claim{ID: id, Number: 1, WorkflowID: "other", Lease: lease})[0].Granted)
	require.Equal(t, "other", *o.row(id).WorkflowID)
}

func TestARunThatIsBehindIsToldTheNextAttempt(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(2).SetNextAttemptAt(ago(-time.Hour)) })
	got := o.claim(id, 1)
	require.Greater(t, got.Delay, 30*time.Minute)
	require.LessOrEqual(t, got.Delay, 2*time.Hour)
	require.Equal(t, store.Claimed{Wait: true, Attempt: 3, Delay: got.Delay}, got)
	require.Nil(t, o.row(id).LeaseUntil)
}

func TestARunThatIsAheadIsToldTheNextAttempt(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(1).SetNextAttemptAt(ago(time.Hour)) })
	require.Equal(t, store.Claimed{Wait: true, Attempt: 2}, o.claim(id, 5))
	require.Nil(t, o.row(id).LeaseUntil)
}

func TestADeliveryThatHasEndedIsGone(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	for _, status := range []delivery.Status{delivery.StatusSucceeded, delivery.StatusFailed} {
		id := o.delivery(ended(status))
		want := store.Claimed{Gone: true, Ended: &store.Ended{Failed: status == delivery.StatusFailed, Attempts: 1}}
		require.Equal(t, want, o.claim(id, 2), status)
		require.Equal(t, want, o.claim(id, 1), status)
		require.Nil(t, o.row(id).LeaseUntil)
	}
}

func TestADeliveryWhoseRowIsDeletedIsGone(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	require.NoError(t, o.store.Client().Webhook.DeleteOneID(o.webhook).Exec(o.ctx))
	require.Equal(t, store.Claimed{Gone: true}, o.claim(id, 1))
	require.Equal(t, store.Claimed{Gone: true}, o.claim(publicid.NewDelivery(), 1))
}

func TestAnswersStandInTheOrderOfTheClaims(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	theirs := another(t, o.store, o.pool)
	leased := o.delivery(func(c *db.DeliveryCreate) { c.SetLeaseUntil(ago(-time.Hour)) })
	later := o.delivery(func(c *db.DeliveryCreate) { c.SetAttemptCount(3) })
	wanted := []struct {
		id     publicid.Delivery
		answer string
	}{
		{o.delivery(), "granted"}, {o.delivery(ended(delivery.StatusFailed)), "gone"}, {theirs.delivery(), "granted"},
		{leased, "wait 1"}, {publicid.NewDelivery(), "gone"}, {later, "wait 4"}, {o.delivery(), "granted"},
	}
	for _, reverse := range []bool{false, true} {
		if reverse {
			slices.Reverse(wanted)
			_, err := o.store.Client().Delivery.Update().ClearLeaseUntil().
				Where(delivery.IDNEQ(leased)).Save(system(t))
			require.NoError(t, err)
		}
		var claims []store.Claim
		var expected, answers []string
		for _, w := range wanted {
			claims = append(claims, store.Claim{ID: w.id, Number: 1, WorkflowID: run, Lease: lease})
			expected = append(expected, w.answer)
		}
		for _, got := range o.claimAll(claims...) {
			answers = append(answers, inWords(got))
		}
		require.Equal(t, expected, answers)
	}
}

func inWords(c store.Claimed) string {
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
	newOutbox(t).claimAll()
}

// A process combines its calls in one batch. A batch can contain a workflow's retry of an activity
// together with the first try.
func TestADeliveryClaimedTwiceInOneBatchIsGrantedOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	c := store.Claim{ID: id, Number: 1, WorkflowID: run, Lease: lease}
	var answers []string
	for _, got := range o.claimAll(c, c, store.Claim{ID: id, Number: 2, WorkflowID: run, Lease: lease}) {
		answers = append(answers, inWords(got))
	}
	require.ElementsMatch(t, []string{"granted", "wait 1", "wait 1"}, answers)
	require.Equal(t, "wait 1", answers[2])
}

func TestADeliveryClaimedByManyAtOnceIsGrantedOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	id := o.delivery()
	granted := together(t, 8, func(ctx context.Context) (int, error) {
		return countGranted(o.store.ClaimDeliveries(ctx, []store.Claim{{ID: id, Number: 1, WorkflowID: run, Lease: lease}}))
	})
	require.Equal(t, 1, granted)
}

// Two processes may claim the same deliveries in different orders, for example after a restart.
// They must not deadlock.
func TestBatchesThatOverlapInAnyOrderGrantEachDeliveryOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	s := o.store
	var claims []store.Claim
	for range 100 {
		claims = append(claims, store.Claim{ID: o.delivery(), Number: 1, WorkflowID: run, Lease: lease})
	}
	backwards := slices.Clone(claims)
	slices.Reverse(backwards)
	orders := make(chan []store.Claim, 6)
	for range 3 {
		orders <- claims
		orders <- backwards
	}
	granted := together(t, 6, func(ctx context.Context) (int, error) {
		return countGranted(s.ClaimDeliveries(ctx, <-orders))
	})
	require.Equal(t, len(claims), granted)
}

func countGranted(answers []store.Claimed, err error) (int, error) {
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
