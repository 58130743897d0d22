package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/send"
)

const (
	// How long a test waits for what must happen, and how often it looks.
	waitFor = 30 * time.Second
	tick    = time.Millisecond
)

func TestAWebhookHasSoManyPlacesAndNoMore(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(2), publicid.NewWebhook()
	first := s.acquire(t.Context(), webhook)
	second := s.acquire(t.Context(), webhook)
	require.NotNil(t, first)
	require.NotNil(t, second)
	require.Nil(t, s.acquire(noTime(), webhook))
	first(true)
	require.NotNil(t, s.acquire(t.Context(), webhook))
}

func TestTheWaitForAPlaceEndsWhenOneIsGivenBack(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(1), publicid.NewWebhook()
	release := s.acquire(t.Context(), webhook)
	got := make(chan bool)
	go func() {
		next := s.acquire(context.Background(), webhook)
		got <- next != nil
	}()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.held[webhook].users == 2
	}, waitFor, tick)
	release(true)
	require.True(t, <-got)
}

func TestAWebhookLagsWhoseAttemptsFailOneAfterTheOtherUntilOneSucceeds(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(2), publicid.NewWebhook()
	release := s.acquire(t.Context(), webhook)
	for range failedInARow {
		s.answered(webhook, false)
		require.False(t, s.lags(webhook))
	}
	s.answered(webhook, false)
	require.True(t, s.lags(webhook))
	s.retry(webhook, 2, time.Hour)
	release(true)
	require.True(t, s.lags(webhook), "until it is tried again")
	s.answered(webhook, true)
	require.False(t, s.lags(webhook))
}

func TestAWebhookLagsThatHasMoreBeforeItThanPlaces(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(2), publicid.NewWebhook()
	require.False(t, s.lags(webhook))
	release := s.acquire(t.Context(), webhook)
	s.retry(webhook, 2, time.Hour)
	require.False(t, s.lags(webhook))
	s.turn(webhook, 1, time.Hour)
	require.True(t, s.lags(webhook))
	release(true)
	require.False(t, s.lags(webhook))
}

func TestOneWebhookTakesNoPlaceOfAnother(t *testing.T) {
	t.Parallel()
	s := newSlots(1)
	s.acquire(t.Context(), publicid.NewWebhook())
	release := s.acquire(noTime(), publicid.NewWebhook())
	require.NotNil(t, release)
}

func TestAWebhookWithNothingInFlightTakesNoMemory(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(1), publicid.NewWebhook()
	release := s.acquire(t.Context(), webhook)
	s.acquire(noTime(), webhook)
	release(true)
	require.Empty(t, s.held)
}

func TestWhoFindsNoPlaceWaitsForATurnAtThePaceOfTheReceiver(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(perWebhook), publicid.NewWebhook()
	// 2,400 attempts in groups of 60 at a receiver that hangs.
	s.ended(s.enter(webhook), send.AttemptTimeout)
	var last time.Duration
	for i := range 40 {
		wait := s.turn(webhook, 60, 0)
		require.Greater(t, wait, last, "turns don't fall together")
		require.InDelta(t, (time.Duration(i+1) * 60 * send.AttemptTimeout / turnPlaces).Seconds(), wait.Seconds(), 1)
		last = wait
	}
}

func TestBeforeAnythingIsKnownAReceiverIsNotTakenForOneThatHangs(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(perWebhook), publicid.NewWebhook()
	// 50 single ones that the lane has no room for.
	var last time.Duration
	for range 50 {
		last = s.turn(webhook, 1, retryStep)
	}
	require.InDelta(t, 2.5, last.Seconds(), 1)
}

func TestNobodyWaitsLongerForATurnThanTenMinutes(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(perWebhook), publicid.NewWebhook()
	s.ended(s.enter(webhook), send.AttemptTimeout)
	waits := map[time.Duration]bool{}
	for range 1000 {
		wait := s.turn(webhook, 60, 0)
		require.LessOrEqual(t, wait, furthest)
		waits[wait.Truncate(time.Second)] = true
	}
	require.Greater(t, len(waits), 100, "and those who ask again don't do it together")
}

func TestAFirstAttemptDoesNotWaitBehindTurns(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(1), publicid.NewWebhook()
	require.Equal(t, firstWait, s.patience(webhook))
	require.Greater(t, s.turn(webhook, 100, 0), firstWait)
	require.Zero(t, s.patience(webhook))
	require.NotNil(t, s.acquire(noTime(), webhook), "but takes a place that is free")
}

func TestRetriesOfAWebhookThatFailedTogetherAreSpread(t *testing.T) {
	t.Parallel()
	s, webhook, second := newSlots(perWebhook), publicid.NewWebhook(), map[int]int{}
	const delay = 30 * time.Second
	began := time.Now()
	for range 10_000 {
		now := time.Now()
		late := s.retry(webhook, 2, delay)
		require.GreaterOrEqual(t, late, time.Duration(0))
		second[int((now.Sub(began)+late)/time.Second)]++
	}
	for _, n := range second {
		require.LessOrEqual(t, n, 110, "100 of one second and a few at its edges")
	}
	// Other webhooks and other attempts have moments of their own.
	require.Zero(t, s.retry(webhook, 3, 2*time.Minute))
	require.Zero(t, s.retry(publicid.NewWebhook(), 2, delay))
}

func TestASingleRetryIsNotLate(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(perWebhook), publicid.NewWebhook()
	require.Zero(t, s.retry(webhook, 2, 30*time.Second))
}

func TestATurnThatIsOverTakesNoMemory(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(perWebhook), publicid.NewWebhook()
	release := s.acquire(t.Context(), webhook)
	release(true)
	require.Positive(t, s.turn(webhook, 1, tick))
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.held) == 0
	}, waitFor, tick)
}
