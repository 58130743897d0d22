package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/testkit/apptest"
)

// guess sends a random key.
func guess(t *testing.T, n *apptest.Tenant, header ...string) apptest.Answer {
	t.Helper()
	header = append([]string{"Authorization", "Bearer esk_" + uuid.NewString()}, header...)
	return n.Do(t, http.MethodGet, "/v1/me", nil, header...)
}

// guessOn guesses until the address is refused.
func guessOn(t *testing.T, n *apptest.Tenant, header ...string) (refused apptest.Answer, guesses int) {
	t.Helper()
	for ; guesses < 1000; guesses++ {
		a := guess(t, n, header...)
		if a.Status == http.StatusTooManyRequests {
			return a, guesses
		}
		noEntry(t, a, "a guess")
	}
	t.Fatal("a thousand guesses and no end")
	return apptest.Answer{}, 0
}

// requireUsedUp requires that an address has used up its budget. The tokens that came back in the
// meantime are far fewer than a new budget.
func requireUsedUp(t *testing.T, n *apptest.Tenant, why string, header ...string) {
	t.Helper()
	_, guesses := guessOn(t, n, header...)
	require.Less(t, guesses, 30, why)
}

func TestAClientThatGuessesKeysIsRefusedAndBlocksNoOtherClient(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Alone: true})
	n := app.Tenant(t)
	unused := n.NewKey(t, access.NewAPIKey{Name: "unused", Scope: "read"})
	a, _ := guessOn(t, n)
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
	requireUsedUp(t, n, "nobody's word is taken", "X-Forwarded-For", "203.0.113.9")
}

func TestGuessesAreCountedByTheAddressThatATrustedProxyNames(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_TRUSTED_PROXIES=127.0.0.0/8"}})
	n := app.Tenant(t)
	const from = "X-Forwarded-For"
	guessOn(t, n, from, "2001:db8::1")
	for i := range 10 {
		said := fmt.Sprintf("192.0.2.%d, 2001:db8::%d", i, i)
		requireUsedUp(t, n, "of one /64, whatever it says", from, said)
	}
	noEntry(t, guess(t, n, from, "2001:db8:0:1::1"), "of another /64")
	noEntry(t, guess(t, n, from, "203.0.113.9"), "of another network")
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/me", nil, from, "2001:db8::1").Status)
}

func TestAFloodOfGuessesKeepsNoValidKeyWaiting(t *testing.T) {
	t.Parallel()
	// The fewest connections with which the service runs.
	app := apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_DATABASE_MAX_CONNS=2"}})
	n := app.Tenant(t)
	guessers(t, app, 64)
	for range 20 {
		key := n.NewKey(t, access.NewAPIKey{Name: "new", Scope: "read"})
		require.Equal(t, http.StatusOK, meanwhile(t, app, http.MethodGet, "/v1/me", key, ""))
	}
}

// guessers guess keys until the test ends, and ignore the answers.
func guessers(t *testing.T, app *apptest.App, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = request(ctx, app, http.MethodGet, "/v1/me", "esk_"+uuid.NewString(), "")
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
}
