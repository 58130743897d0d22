package delivery_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/delivery"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// The worker asks for a token within a second, or a turn within ten minutes.
const (
	within = time.Second
	ahead  = 10 * time.Minute
)

// throttle gives the webhook a limit and a full bucket.
func (o *outbox) throttle(most int) {
	o.T.Helper()
	require.NoError(o.T, o.Store.Client().Webhook.UpdateOneID(o.Webhook).SetMaxPerSecond(most).Exec(o.Ctx))
	o.bucket("full_at = '-infinity', line_until = '-infinity'")
}

// bucket changes the bucket, if there is one.
func (o *outbox) bucket(set string) {
	o.T.Helper()
	_, err := o.Pool.Exec(o.T.Context(), "UPDATE webhook_throttles SET "+set+" WHERE webhook_id = $1", o.Webhook.UUID())
	require.NoError(o.T, err)
}

// line is the last turn that was given out.
func (o *outbox) line() (until time.Time) {
	o.T.Helper()
	require.NoError(o.T, o.Pool.QueryRow(o.T.Context(),
		"SELECT line_until FROM webhook_throttles WHERE webhook_id = $1", o.Webhook.UUID()).Scan(&until))
	return until
}

// ask asks for one token each of n new deliveries, oldest first.
func (o *outbox) ask(n int, later bool) []delivery.WebhookToken {
	o.T.Helper()
	asks := make([]delivery.WebhookTokenAsk, n)
	for i := range asks {
		asks[i] = delivery.WebhookTokenAsk{Webhook: o.Webhook, Delivery: publicid.NewDelivery(), Later: later}
	}
	return o.askAll(asks)
}

func (o *outbox) askAll(asks []delivery.WebhookTokenAsk) []delivery.WebhookToken {
	o.T.Helper()
	tokens, err := delivery.TakeWebhookTokens(o.T.Context(), o.Store, within, ahead, asks)
	require.NoError(o.T, err)
	require.Len(o.T, tokens, len(asks))
	return tokens
}

// firsts returns asks for the first attempts of n new deliveries with rows, for a run.
func (o *outbox) firsts(n int, of string) []delivery.WebhookTokenAsk {
	o.T.Helper()
	asks := make([]delivery.WebhookTokenAsk, n)
	for i := range asks {
		at := fixture.Ago(time.Minute)
		id := o.Delivery(func(d *db.DeliveryCreate) { d.SetCreatedAt(at).SetNextAttemptAt(at) })
		asks[i] = delivery.WebhookTokenAsk{Webhook: o.Webhook, Delivery: id, Number: 1, WorkflowID: of, RunID: of}
	}
	return asks
}

func TestAClaimNeedsATokenWhereTheWebhookHasAThrottle(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.throttle(5)
	id := o.Delivery()
	require.Equal(t, delivery.Claimed{Throttled: true}, o.Claim(id, 1))
	require.Nil(t, o.Row(id).LeaseUntil, "it holds nobody up")
	require.True(t, o.ClaimAll(delivery.Claim{ID: id, Number: 1, Lease: fixture.Lease, Token: true})[0].Granted)
	require.True(t, o.Claim(id, 1).Wait, "an attempt is in flight, whatever the throttle")

	ended := o.Delivery(fixture.Ended("failed"))
	require.True(t, o.Claim(ended, 1).Gone)
	require.NoError(t, o.Store.Client().Webhook.UpdateOneID(o.Webhook).SetEnabled(false).Exec(o.Ctx))
	require.True(t, o.Claim(o.Delivery(), 1).Granted, "what is to end needs no token")
}

func TestAWebhookWithoutAThrottleHasNoBucket(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	require.True(t, o.Claim(o.Delivery(), 1).Granted)
	for _, token := range o.ask(3, false) {
		require.Equal(t, delivery.WebhookToken{Granted: true}, token)
	}
	var buckets int
	require.NoError(t, o.Pool.QueryRow(t.Context(), "SELECT count(*) FROM webhook_throttles WHERE webhook_id = $1", o.Webhook.UUID()).Scan(&buckets))
	require.Zero(t, buckets)
}

func TestAFullBucketGrantsASecondsTokensAtOnceAndThenOneByOne(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.throttle(5)
	for i, token := range o.ask(14, false) {
		require.False(t, token.Crowded)
		require.Equal(t, i < 10, token.Granted, "%d: what waits no longer than a second is granted", i)
		require.InDelta(t, max(0, float64(i-4)/5), token.Wait.Seconds(), 1e-5, "%d", i)
	}
}

func TestFirstAttemptsStandInLineAndLaterOnesPassIt(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.throttle(2)
	o.ask(10, false) // four tokens, and turns after 1.5 to 4 s
	o.bucket("full_at = '-infinity'")
	first := o.ask(2, false)
	require.False(t, first[0].Granted || first[1].Granted, "though the bucket is full")
	require.LessOrEqual(t, first[0].Wait, 4500*time.Millisecond)
	require.InDelta(t, 0.5, (first[1].Wait - first[0].Wait).Seconds(), 1e-5)
	later := o.ask(5, true)
	require.Equal(t, []bool{true, true, true, true, false}, granted(later))
	require.Greater(t, later[4].Wait, first[1].Wait-time.Second, "it goes to the end of the line")
}

func granted(tokens []delivery.WebhookToken) (all []bool) {
	for _, token := range tokens {
		all = append(all, token.Granted)
	}
	return all
}

func TestTurnsReachTenMinutesAheadAndNoFurther(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.throttle(1)
	tokens := o.ask(700, false)
	for i, token := range tokens {
		require.Equal(t, i < 2, token.Granted, "%d", i)
		require.Equal(t, i > 600, token.Crowded, "%d", i)
		if !token.Crowded {
			require.LessOrEqual(t, token.Wait, ahead)
		}
	}
	require.WithinDuration(t, time.Now().Add(ahead), o.line(), testkit.Wait)
}

func TestATurnIsInTheDeliverysRowWhenItIsGiven(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.throttle(1)
	asks := o.firsts(4, "ours")
	tokens := o.askAll(asks)
	require.Equal(t, []bool{true, true, false, false}, granted(tokens))
	for i, a := range asks {
		row := o.Row(a.Delivery)
		require.Equal(t, i >= 2, tokens[i].Noted)
		if !tokens[i].Noted {
			require.Equal(t, row.CreatedAt, *row.NextAttemptAt)
			continue
		}
		require.Equal(t, "ours", *row.WorkflowID)
		require.Equal(t, "ours", *row.WorkflowRunID)
		require.True(t, row.NextAttemptAt.After(row.CreatedAt))
	}
	require.True(t, o.line().Equal(*o.Row(asks[3].Delivery).NextAttemptAt))
}

func TestADeliveryKeepsItsTurnAfterAKillWithoutLengtheningTheLine(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.throttle(1)
	asks := o.firsts(60, "killed")
	tokens := o.askAll(asks)
	require.False(t, tokens[2].Granted)
	line := o.line()
	for _, of := range []string{"second", "third"} {
		again := slices.Clone(asks[2:]) // the first two have been attempted
		for i := range again {
			again[i].WorkflowID = of
		}
		o.bucket("full_at = '-infinity'") // no token was taken meanwhile
		for i, token := range o.askAll(again) {
			require.False(t, token.Granted || token.Crowded, "%d", i)
			require.True(t, token.Noted, "the run that asked last answers for it")
			require.LessOrEqual(t, token.Wait, tokens[i+2].Wait)
			require.Equal(t, of, *o.Row(again[i].Delivery).WorkflowID)
		}
		require.True(t, o.line().Equal(line))
	}
	behind := o.firsts(1, "behind")
	o.askAll(behind)
	require.WithinDuration(t, line.Add(time.Second), *o.Row(behind[0].Delivery).NextAttemptAt, time.Millisecond)
}

func TestADeliveryThatMissedItsTurnGetsATokenAtOnce(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.throttle(1)
	asks := o.firsts(5, fixture.Run)
	o.askAll(asks)
	late := asks[2:3]
	require.NoError(t, o.Update(late[0].Delivery).SetNextAttemptAt(fixture.Ago(time.Second)).Exec(o.Ctx))
	o.bucket("full_at = '-infinity'")
	require.Equal(t, []bool{true}, granted(o.askAll(late)), "it was asked for as a first attempt, and has stood in line")
}

func TestALockedDeliveryRowDelaysNoThrottleToken(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.throttle(1)
	asks := o.firsts(4, fixture.Run)
	tx, err := o.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), "SELECT FROM deliveries d, webhooks h WHERE h.id = d.webhook_id FOR UPDATE")
	require.NoError(t, err)
	for i, token := range o.askAll(asks) {
		require.Equal(t, i < 2, token.Granted)
		require.False(t, token.Noted, "it is left to who puts it off")
	}
}

func TestALimitThatIsChangedBeginsANewLineAndSendingItBackBeginsNone(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	o.throttle(1)
	o.ask(10, false)
	hook := o.Store.Client().Webhook
	require.NoError(t, hook.UpdateOneID(o.Webhook).SetMaxPerSecond(1).Exec(o.Ctx))
	o.bucket("full_at = '-infinity'")
	require.Equal(t, []bool{false}, granted(o.ask(1, false)))
	require.NoError(t, hook.UpdateOneID(o.Webhook).SetMaxPerSecond(2).Exec(o.Ctx))
	require.Equal(t, []bool{true, true}, granted(o.ask(2, false)))
}

func TestTheBucketOfAWebhookWithoutAThrottleIsRemoved(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	buckets := func() (n int) {
		require.NoError(t, o.Pool.QueryRow(t.Context(), "SELECT count(*) FROM webhook_throttles WHERE webhook_id = $1", o.Webhook.UUID()).Scan(&n))
		return n
	}
	o.throttle(1)
	o.ask(1, false)
	require.NoError(t, delivery.RemoveThrottles(t.Context(), o.Store))
	require.Equal(t, 1, buckets())
	require.NoError(t, o.Store.Client().Webhook.UpdateOneID(o.Webhook).ClearMaxPerSecond().Exec(o.Ctx))
	require.NoError(t, delivery.RemoveThrottles(t.Context(), o.Store))
	require.Zero(t, buckets())
}

// The bucket determines the start of each attempt, in any process. No second may have more starts
// than the tokens of a full bucket and those that flow in within that second.
func TestProcessesShareTheTokensOfAThrottleBucket(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	o := another(t, fixture.Open(t, url), fixture.PoolOf(t, url))
	const most = 50
	o.throttle(most)
	began := time.Now()
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		begins []time.Duration
	)
	for range 4 {
		s := fixture.Open(t, url)
		all.Go(func() {
			for range 200 {
				tokens, err := delivery.TakeWebhookTokens(t.Context(), s, within, ahead, []delivery.WebhookTokenAsk{{Webhook: o.Webhook, Delivery: publicid.NewDelivery(), Later: true}})
				if err != nil {
					t.Error(err)
					return
				}
				if tokens[0].Granted {
					mu.Lock()
					begins = append(begins, time.Since(began)+tokens[0].Wait)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	slices.Sort(begins)
	require.GreaterOrEqual(t, len(begins), 2*most, "a second's at once, and one second's to come")
	last := time.Since(began) + within
	require.LessOrEqual(t, float64(len(begins)), most*(1+last.Seconds())+1)
}
