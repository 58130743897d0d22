package receiver_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/e2e/faults/ledger"
	"earshot/e2e/faults/receiver"
)

func TestADeadEndpointAnswers503(t *testing.T) {
	t.Parallel()
	b := newBench(t, receiver.Dead)
	require.Equal(t, http.StatusServiceUnavailable, b.send(b.request(t.Context(), "a", "dlv_1")))
}

func TestASlowEndpointTakes300Milliseconds(t *testing.T) {
	t.Parallel()
	b := newBench(t, receiver.Slow)
	require.Equal(t, http.StatusOK, b.send(b.request(t.Context(), "a", "dlv_1")))
	got := b.entries(2)
	require.GreaterOrEqual(t, got[1].At.Sub(got[0].At), 300*time.Millisecond)
}

func TestAFlakyEndpointTakesADeliveryAfterUpToTwoFailures(t *testing.T) {
	t.Parallel()
	b := newBench(t, receiver.Flaky)
	seen := map[int]bool{}
	for n := range 30 {
		delivery := "dlv_" + strconv.Itoa(n)
		failures := receiver.Failures(delivery)
		seen[failures] = true
		for range failures {
			require.Equal(t, http.StatusInternalServerError, b.send(b.request(t.Context(), "a", delivery)))
		}
		for range 2 {
			require.Equal(t, http.StatusOK, b.send(b.request(t.Context(), "a", delivery)))
		}
	}
	require.Equal(t, map[int]bool{0: true, 1: true, 2: true}, seen)
}

// leave sends a request whose client disconnects after the endpoint has read it.
func (b *bench) leave() {
	ctx, cancel := context.WithCancel(b.t.Context())
	q, left := b.request(ctx, "a", "dlv_1"), make(chan struct{})
	go func() { defer close(left); b.send(q) }()
	b.awaitWaiting(1)
	cancel()
	<-left
}

func (b *bench) awaitWaiting(n int) {
	require.Eventually(b.t, func() bool { return b.Waiting("a") == n }, wait, time.Millisecond)
}

func TestAClientThatLeavesBeforeTheAnswerIsWrittenDownAsBroken(t *testing.T) {
	t.Parallel()
	for _, behaviour := range []receiver.Behaviour{receiver.Hanging, receiver.Held} {
		t.Run(string(behaviour), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, behaviour)
			b.leave()
			got := b.entries(2)
			require.Equal(t, ledger.Arrived, got[0].Kind)
			require.Equal(t, ledger.Broken, got[1].Kind)
			require.Zero(t, got[1].Status)
			b.awaitWaiting(0)
		})
	}
}

func TestAHeldRequestIsAnsweredWhenItIsReleased(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(*bench){
		"by name": func(b *bench) { b.Release("a") },
		"by another endpoint": func(b *bench) {
			b.Add(receiver.Endpoint{Name: "a", Secret: secret, Behaviour: receiver.Healthy})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, receiver.Held)
			status := make(chan int)
			go func() { status <- b.send(b.request(t.Context(), "a", "dlv_1")) }()
			b.awaitWaiting(1)
			release(b)
			require.Equal(t, http.StatusOK, <-status)
			require.Equal(t, http.StatusOK, b.send(b.request(t.Context(), "a", "dlv_2")), "what follows isn't held")
		})
	}
}
