package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
)

const (
	// How long a test waits for what must happen, and how often it looks.
	waitFor = 30 * time.Second
	tick    = time.Millisecond
)

func TestAWebhookHasSoManyPlacesAndNoMore(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(2), publicid.NewWebhook()
	first, _ := s.acquire(t.Context(), webhook, waitFor)
	second, _ := s.acquire(t.Context(), webhook, waitFor)
	require.NotNil(t, first)
	require.NotNil(t, second)
	third, ahead := s.acquire(t.Context(), webhook, time.Nanosecond)
	require.Nil(t, third)
	require.Equal(t, 2, ahead)
	first()
	third, _ = s.acquire(t.Context(), webhook, waitFor)
	require.NotNil(t, third)
}

func TestTheWaitForAPlaceEndsWhenOneIsGivenBack(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(1), publicid.NewWebhook()
	release, _ := s.acquire(t.Context(), webhook, waitFor)
	got := make(chan bool)
	go func() {
		next, _ := s.acquire(context.Background(), webhook, waitFor)
		got <- next != nil
	}()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.held[webhook].users == 2
	}, waitFor, tick)
	release()
	require.True(t, <-got)
}

func TestOneWebhookTakesNoPlaceOfAnother(t *testing.T) {
	t.Parallel()
	s := newSlots(1)
	_, _ = s.acquire(t.Context(), publicid.NewWebhook(), waitFor)
	release, _ := s.acquire(t.Context(), publicid.NewWebhook(), time.Nanosecond)
	require.NotNil(t, release)
}

func TestAWebhookWithNothingInFlightTakesNoMemory(t *testing.T) {
	t.Parallel()
	s, webhook := newSlots(1), publicid.NewWebhook()
	release, _ := s.acquire(t.Context(), webhook, waitFor)
	_, _ = s.acquire(t.Context(), webhook, time.Nanosecond)
	release()
	require.Empty(t, s.held)
}
