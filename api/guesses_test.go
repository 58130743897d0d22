package api_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"earshot/internal/feedback"
	"earshot/internal/testkit"
)

// guess sends a key that somebody made up.
func guess(t *testing.T, n *testkit.Tenant, header ...string) testkit.Answer {
	t.Helper()
	return n.Do(t, http.MethodGet, "/v1/me", nil, append([]string{"Authorization", "Bearer esk_" + uuid.NewString()}, header...)...)
}

// guessOn goes on until the address is refused.
func guessOn(t *testing.T, n *testkit.Tenant, header ...string) testkit.Answer {
	t.Helper()
	for range 1000 {
		a := guess(t, n, header...)
		if a.Status != http.StatusUnauthorized {
			return a
		}
		noEntry(t, a, "a guess")
	}
	t.Fatal("a thousand guesses and no end")
	return testkit.Answer{}
}

func TestWhoeverGuessesKeysIsRefusedAndKeepsNobodyElseOut(t *testing.T) {
	t.Parallel()
	app := testkit.Start(t, testkit.Options{})
	n := app.Tenant(t)
	unused := n.NewKey(t, feedback.NewAPIKey{Name: "unused", Scope: "read"})
	a := guessOn(t, n)
	require.Equal(t, http.StatusTooManyRequests, a.Status)
	require.Equal(t, "ERR_RATE_LIMITED", a.Code())
	require.Equal(t, "30", a.Header.Get("X-RateLimit-Limit"))
	require.Equal(t, "0", a.Header.Get("X-RateLimit-Remaining"))
	wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.Positive(t, wait)
	require.Empty(t, a.Header.Get("WWW-Authenticate"))

	for _, key := range []string{n.Key, n.ReadKey, unused} {
		a := n.Do(t, http.MethodGet, "/v1/me", nil, "Authorization", "Bearer "+key)
		require.Equal(t, http.StatusOK, a.Status, "a valid key from the same address")
		require.Equal(t, "100000", a.Header.Get("X-RateLimit-Limit"), "its own budget")
	}
	noEntry(t, n.Do(t, http.MethodGet, "/v1/me", nil, "Authorization", ""), "no key is no guess")
	require.Equal(t, http.StatusTooManyRequests, guess(t, n, "X-Forwarded-For", "203.0.113.9").Status, "nobody's word is taken")
}

func TestGuessesAreCountedByTheAddressThatATrustedProxyNames(t *testing.T) {
	t.Parallel()
	app := testkit.Start(t, testkit.Options{Environ: []string{"EARSHOT_TRUSTED_PROXIES=127.0.0.0/8"}})
	n := app.Tenant(t)
	const from = "X-Forwarded-For"
	guessOn(t, n, from, "2001:db8::1")
	for i := range 10 {
		said := fmt.Sprintf("192.0.2.%d, 2001:db8::%d", i, i)
		require.Equal(t, http.StatusTooManyRequests, guess(t, n, from, said).Status, "of one /64, whatever it says")
	}
	noEntry(t, guess(t, n, from, "2001:db8:0:1::1"), "of another /64")
	noEntry(t, guess(t, n, from, "203.0.113.9"), "of another network")
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/me", nil, from, "2001:db8::1").Status)
}

func TestAFloodOfGuessesKeepsNoValidKeyWaiting(t *testing.T) {
	t.Parallel()
	// As few connections as the service runs with.
	app := testkit.Start(t, testkit.Options{Environ: []string{"EARSHOT_DATABASE_MAX_CONNS=2"}})
	n := app.Tenant(t)
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					guess(t, n)
				}
			}
		})
	}
	for range 20 {
		key := n.NewKey(t, feedback.NewAPIKey{Name: "new", Scope: "read"})
		require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/me", nil, "Authorization", "Bearer "+key).Status)
	}
	close(done)
	all.Wait()
}
