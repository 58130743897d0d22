package fairness

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/send"
)

const (
	// waitFor is how long a test waits for a condition, and tick is how often it checks.
	waitFor = 30 * time.Second
	tick    = time.Millisecond
)

// noTime returns a context that has already ended.
func noTime() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAWebhookHasSoManySlotsAndNoMore(t *testing.T) {
	t.Parallel()
	l, webhook := newWebhookLimits(slots(2)), publicid.NewWebhook()
	first := l.Acquire(t.Context(), webhook)
	second := l.Acquire(t.Context(), webhook)
	require.NotNil(t, first)
	require.NotNil(t, second)
	require.Nil(t, l.Acquire(noTime(), webhook))
	first()
	require.NotNil(t, l.Acquire(t.Context(), webhook))
}

func TestTheWaitForASlotEndsWhenOneIsGivenBack(t *testing.T) {
	t.Parallel()
	l, webhook := newWebhookLimits(slots(1)), publicid.NewWebhook()
	release := l.Acquire(t.Context(), webhook)
	got := make(chan bool)
	go func() {
		next := l.Acquire(context.Background(), webhook)
		got <- next != nil
	}()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.all.Counts[webhook] == 2
	}, waitFor, tick)
	release()
	require.True(t, <-got)
}

func TestAWebhookLagsWhoseAttemptsFailOneAfterTheOtherUntilOneSucceeds(t *testing.T) {
	t.Parallel()
	l, webhook := newWebhookLimits(slots(2)), publicid.NewWebhook()
	release := l.Acquire(t.Context(), webhook)
	for range production().toleratedFailures {
		l.Answered(webhook, false, time.Second)
		require.False(t, l.Lags(webhook))
	}
	l.Answered(webhook, false, time.Second)
	require.True(t, l.Lags(webhook))
	l.ReserveRetry(webhook, 2, time.Hour)
	release()
	require.True(t, l.Lags(webhook), "until it is tried again")
	l.Answered(webhook, true, time.Second)
	require.False(t, l.Lags(webhook))
}

func TestAWebhookLagsThatHasMoreToDoThanSlots(t *testing.T) {
	t.Parallel()
	l, webhook := newWebhookLimits(slots(2)), publicid.NewWebhook()
	require.False(t, l.Lags(webhook))
	release := l.Acquire(t.Context(), webhook)
	l.ReserveRetry(webhook, 2, time.Hour)
	require.False(t, l.Lags(webhook))
	l.ReserveBacklog(webhook, 1)
	require.True(t, l.Lags(webhook))
	release()
	require.False(t, l.Lags(webhook))
}

func TestOneWebhookTakesNoSlotOfAnother(t *testing.T) {
	t.Parallel()
	l := newWebhookLimits(slots(1))
	l.Acquire(t.Context(), publicid.NewWebhook())
	release := l.Acquire(noTime(), publicid.NewWebhook())
	require.NotNil(t, release)
}

func TestAWebhookWithNothingInFlightTakesNoMemory(t *testing.T) {
	t.Parallel()
	l, webhook := newWebhookLimits(slots(1)), publicid.NewWebhook()
	release := l.Acquire(t.Context(), webhook)
	l.Acquire(noTime(), webhook)
	release()
	require.Empty(t, l.all.Of)
}

func TestAnAttemptWithoutASlotWaitsForTheReceiversBacklog(t *testing.T) {
	t.Parallel()
	l, webhook := NewWebhookLimits(), publicid.NewWebhook()
	// 2,400 attempts in groups of 60, to a receiver that hangs.
	require.NotNil(t, l.Acquire(t.Context(), webhook))
	l.Answered(webhook, false, send.AttemptTimeout)
	var last time.Duration
	for i := range 40 {
		wait := l.ReserveBacklog(webhook, 60)
		require.Greater(t, wait, last, "they don't come back together")
		require.InDelta(t, (time.Duration(i+1) * 60 * send.AttemptTimeout / 64).Seconds(), wait.Seconds(), 1)
		last = wait
	}
}

func TestBeforeAnythingIsKnownAReceiverIsNotTakenForOneThatHangs(t *testing.T) {
	t.Parallel()
	l, webhook := NewWebhookLimits(), publicid.NewWebhook()
	// 50 single attempts, for which the later queue has no room.
	var last time.Duration
	for range 50 {
		last = l.ReserveBacklog(webhook, 1)
	}
	require.InDelta(t, 2.5, last.Seconds(), 1)
}

func TestNothingIsPutOffForLongerThanTenMinutes(t *testing.T) {
	t.Parallel()
	l, webhook := NewWebhookLimits(), publicid.NewWebhook()
	require.NotNil(t, l.Acquire(t.Context(), webhook))
	l.Answered(webhook, false, send.AttemptTimeout)
	waits := map[time.Duration]bool{}
	for range 1000 {
		wait := l.ReserveBacklog(webhook, 60)
		require.LessOrEqual(t, wait, production().reservedAhead)
		waits[wait.Truncate(time.Second)] = true
	}
	require.Greater(t, len(waits), 100, "and what asks again doesn't do it together")
}

func TestAFirstAttemptDoesNotWaitBehindABacklog(t *testing.T) {
	t.Parallel()
	l, webhook := newWebhookLimits(slots(1)), publicid.NewWebhook()
	require.Equal(t, production().firstWait, l.FirstWait(webhook))
	require.Greater(t, l.ReserveBacklog(webhook, 100), production().firstWait)
	require.Zero(t, l.FirstWait(webhook))
	require.NotNil(t, l.Acquire(noTime(), webhook), "but takes a slot that is free")
}

func TestRetriesOfAWebhookThatFailedTogetherAreSpread(t *testing.T) {
	t.Parallel()
	l, webhook, second := NewWebhookLimits(), publicid.NewWebhook(), map[int]int{}
	const delay = 30 * time.Second
	began := time.Now()
	for range 10_000 {
		now := time.Now()
		late := l.ReserveRetry(webhook, 2, delay)
		require.GreaterOrEqual(t, late, time.Duration(0))
		second[int((now.Sub(began)+late)/time.Second)]++
	}
	for _, n := range second {
		require.LessOrEqual(t, n, 110, "100 of one second and a few at its edges")
	}
	// Other webhooks and other attempt numbers have their own rates.
	require.Zero(t, l.ReserveRetry(webhook, 3, 2*time.Minute))
	require.Zero(t, l.ReserveRetry(publicid.NewWebhook(), 2, delay))
}

func TestASingleRetryIsNotLate(t *testing.T) {
	t.Parallel()
	l, webhook := NewWebhookLimits(), publicid.NewWebhook()
	require.Zero(t, l.ReserveRetry(webhook, 2, 30*time.Second))
}

func TestAReservationThatIsOverTakesNoMemory(t *testing.T) {
	t.Parallel()
	l, webhook := NewWebhookLimits(), publicid.NewWebhook()
	release := l.Acquire(t.Context(), webhook)
	release()
	require.Positive(t, l.ReserveBacklog(webhook, 1))
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.all.Of) == 0
	}, waitFor, tick)
}

// slots returns the rules with another concurrency limit.
func slots(n int) rules {
	r := production()
	r.webhookConcurrency = n
	return r
}
