package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeAPI answers /readyz with a status that the test sets, and every other path with its name.
type fakeAPI struct {
	*httptest.Server
	refuses atomic.Bool
	// asked counts readiness checks.
	asked atomic.Int64
}

func newFakeAPI(t *testing.T, name string) *fakeAPI {
	t.Helper()
	a := &fakeAPI{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			_, _ = io.WriteString(w, name)
			return
		}
		if a.refuses.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		a.asked.Add(1)
	}))
	t.Cleanup(a.Close)
	return a
}

// awaitNotice waits until the balancer has seen the API's present answer.
func (a *fakeAPI) awaitNotice(t *testing.T) {
	t.Helper()
	before := a.asked.Load()
	require.Eventually(t, func() bool { return a.asked.Load() >= before+2 }, waitTimeout, pollInterval)
}

func newBalancerOf(t *testing.T, of ...*fakeAPI) *balancer {
	t.Helper()
	var addresses []string
	for _, a := range of {
		addresses = append(addresses, a.Listener.Addr().String())
	}
	b, err := newBalancer(addresses...)
	require.NoError(t, err)
	t.Cleanup(b.close)
	for _, a := range of {
		a.awaitNotice(t)
	}
	return b
}

// answered sends ten requests, each on its own connection, and counts the answers by API.
func answered(t *testing.T, b *balancer) map[string]int {
	t.Helper()
	ask := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	by := map[string]int{}
	for range 10 {
		answer, err := ask.Get("http://" + b.address())
		require.NoError(t, err)
		name, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		by[string(name)]++
	}
	return by
}

func TestABalancerSendsConnectionsToReadyServersInTurn(t *testing.T) {
	t.Parallel()
	one, two := newFakeAPI(t, "one"), newFakeAPI(t, "two")
	b := newBalancerOf(t, one, two)
	require.Equal(t, map[string]int{"one": 5, "two": 5}, answered(t, b))
	one.refuses.Store(true)
	one.awaitNotice(t)
	require.Equal(t, map[string]int{"two": 10}, answered(t, b))
	two.refuses.Store(true)
	two.awaitNotice(t)
	require.Equal(t, map[string]int{"one": 5, "two": 5}, answered(t, b), "while none is ready it takes them all")
}

func TestABalancerReachesAnotherBackendWhenOneIsGone(t *testing.T) {
	t.Parallel()
	one, two := newFakeAPI(t, "one"), newFakeAPI(t, "two")
	b := newBalancerOf(t, one, two)
	one.Close() // before the balancer has noticed
	require.Equal(t, map[string]int{"two": 10}, answered(t, b))
}
