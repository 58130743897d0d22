package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/ratelimit"
	"earshot/internal/testkit"
)

func TestHoweverManyAskWhetherItIsReadyTheServiceLooksOnceASecond(t *testing.T) {
	t.Parallel()
	log := testkit.NewLogs().Logger()
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		done := make(chan struct{})
		handler, err := api.New(api.UseCases{}, api.Options{RateLimits: ratelimit.NewKeys(nil, 1), Log: log, Checks: []api.Check{{
			Name: "postgres", Run: func(context.Context) error { looks.Add(1); <-done; return nil },
		}}})
		require.NoError(t, err)
		ask := func() int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			return w.Code
		}
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { require.Equal(t, http.StatusOK, ask()) })
		}
		synctest.Wait()
		require.EqualValues(t, 1, looks.Load(), "the others wait for it")
		close(done)
		all.Wait()
		require.Equal(t, http.StatusOK, ask())
		require.EqualValues(t, 1, looks.Load(), "it is remembered")
		time.Sleep(time.Second)
		require.Equal(t, http.StatusOK, ask())
		require.EqualValues(t, 2, looks.Load())
	})
}

// A client that leaves must not cancel the answer of another client.
func TestAClientThatLeavesCancelsNoReadinessCheck(t *testing.T) {
	t.Parallel()
	log := testkit.NewLogs().Logger()
	handler, err := api.New(api.UseCases{}, api.Options{RateLimits: ratelimit.NewKeys(nil, 1), Log: log, Checks: []api.Check{{
		Name: "postgres", Run: func(ctx context.Context) error { return ctx.Err() },
	}}})
	require.NoError(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil).WithContext(gone))
	require.Equal(t, http.StatusOK, w.Code)
}
