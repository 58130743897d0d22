package api_test

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

// With two requests a minute, a token comes back after half a minute, which is far longer than a
// test takes.
func TestABudgetOfTwoRequests(t *testing.T) {
	t.Parallel()
	together(t, apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_RATE_LIMIT=2"}}), map[string]func(*testing.T, *apptest.App){
		"is told by every answer and refuses the third":  budgetIsUsedUp,
		"is each key's own":                              budgetPerKey,
		"is spent by requests that are refused, too":     budgetOfRefusedRequests,
		"gives way to one that a key has of its own":     budgetOfAKey,
		"isn't needed for paths that take no key":        noBudgetWithoutKey,
		"that is used up keeps a request from happening": budgetKeepsFromHappening,
		"lets two of 64 requests pass that come at once": budgetOfManyAtOnce,
	})
}

func number(t *testing.T, a apptest.Answer, header string) int {
	t.Helper()
	n, err := strconv.Atoi(a.Header.Get(header))
	require.NoError(t, err, header)
	return n
}

func budgetIsUsedUp(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	for _, left := range []int{1, 0} {
		began := time.Now()
		a := n.Do(t, http.MethodGet, "/v1/me", nil)
		require.Equal(t, http.StatusOK, a.Status)
		require.Equal(t, 2, number(t, a, "X-RateLimit-Limit"))
		require.Equal(t, left, number(t, a, "X-RateLimit-Remaining"))
		full := time.Unix(int64(number(t, a, "X-RateLimit-Reset")), 0)
		require.WithinRange(t, full, began, time.Now().Add(time.Duration(2-left)*30*time.Second+time.Second))
		require.Empty(t, a.Header.Get("Retry-After"))
	}
	a := n.Do(t, http.MethodGet, "/v1/me", nil)
	require.Equal(t, http.StatusTooManyRequests, a.Status)
	require.Equal(t, "ERR_RATE_LIMITED", a.Code())
	require.Equal(t, 0, number(t, a, "X-RateLimit-Remaining"))
	wait := number(t, a, "Retry-After")
	require.Positive(t, wait)
	require.LessOrEqual(t, wait, 30)
}

func budgetOfManyAtOnce(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	statuses := make([]int, 64)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() { statuses[i] = n.Do(t, http.MethodGet, "/v1/me", nil).Status })
	}
	all.Wait()
	slices.Sort(statuses)
	require.Equal(t, []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests}, statuses[:3])
	require.Equal(t, http.StatusTooManyRequests, statuses[63])
}

func budgetPerKey(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	for range 3 {
		n.Do(t, http.MethodGet, "/v1/me", nil)
	}
	require.Equal(t, http.StatusTooManyRequests, n.Do(t, http.MethodGet, "/v1/me", nil).Status)
	a := n.Do(t, http.MethodGet, "/v1/me", nil, "Authorization", "Bearer "+n.ReadKey)
	require.Equal(t, http.StatusOK, a.Status)
	require.Equal(t, 1, number(t, a, "X-RateLimit-Remaining"))
}

func budgetOfRefusedRequests(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	refused := n.Do(t, http.MethodPost, "/v1/boards", object{"name": ""})
	require.Equal(t, http.StatusUnprocessableEntity, refused.Status)
	require.Equal(t, 1, number(t, refused, "X-RateLimit-Remaining"))
	missing := n.Do(t, http.MethodGet, "/v1/posts/pst_01kkgt5hn1fpnv5e78weftw0p1", nil)
	require.Equal(t, http.StatusNotFound, missing.Status)
	require.Equal(t, 0, number(t, missing, "X-RateLimit-Remaining"))
	require.Equal(t, http.StatusTooManyRequests, n.Do(t, http.MethodPost, "/v1/boards", object{"name": ""}).Status)
}

func budgetOfAKey(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	n.Limit(t, 50)
	a := n.Do(t, http.MethodGet, "/v1/me", nil)
	require.Equal(t, 50, number(t, a, "X-RateLimit-Limit"))
	require.Equal(t, 49, number(t, a, "X-RateLimit-Remaining"))
}

func noBudgetWithoutKey(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	for _, path := range []string{"/healthz", "/readyz", "/v1/openapi.json", "/v1/docs", "/v1/docs/reference", "/v1/docs/search?q=key"} {
		for range 3 {
			a := n.Do(t, http.MethodGet, path, nil)
			require.Equal(t, http.StatusOK, a.Status, path)
			require.Empty(t, a.Header.Get("X-RateLimit-Limit"), path)
		}
	}
}

func budgetKeepsFromHappening(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	for range 2 {
		n.Make(t, http.MethodPost, "/v1/boards", object{"name": "Ideas"})
	}
	unchanged := n.Watch(t)
	require.Equal(t, http.StatusTooManyRequests, n.Do(t, http.MethodPost, "/v1/boards", object{"name": "Ideas"}).Status)
	unchanged(t)
}

func TestRequestsAreLimitedLocallyWhileTheBudgetTableIsLocked(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_RATE_LIMIT=3"}})
	n := app.Tenant(t)
	require.Equal(t, 2, number(t, n.Do(t, http.MethodGet, "/v1/me", nil), "X-RateLimit-Remaining"))
	release := locked(t, app, "LOCK TABLE token_buckets IN ACCESS EXCLUSIVE MODE")
	for _, left := range []int{1, 0} {
		a := n.Do(t, http.MethodGet, "/v1/me", nil)
		require.Equal(t, http.StatusOK, a.Status)
		require.Equal(t, left, number(t, a, "X-RateLimit-Remaining"))
	}
	require.Equal(t, http.StatusTooManyRequests, n.Do(t, http.MethodGet, "/v1/me", nil).Status, "nor is anybody without a limit")
	release()
}
