package telemetry_test

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/telemetry"
)

// served are the metrics of a process that listens.
func served(t *testing.T, profiles bool) (url string) {
	t.Helper()
	m, err := telemetry.New("127.0.0.1:0", profiles, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, m.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, m.Stop()) })
	return "http://" + m.Address()
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func TestProfilesAreServedBesideTheMetricsWhenTheyAreWanted(t *testing.T) {
	t.Parallel()
	url := served(t, true)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/symbol", "/metrics"} {
		require.Equal(t, http.StatusOK, get(t, url+path).StatusCode, path)
	}
	for _, path := range []string{"heap", "allocs", "profile?seconds=1"} {
		answer := get(t, url+"/debug/pprof/"+path)
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		profile, err := gzip.NewReader(answer.Body)
		require.NoError(t, err, "%s is a profile", path)
		text, err := io.ReadAll(profile)
		require.NoError(t, err)
		require.NotEmpty(t, text)
	}
}

func TestNoProfileIsServedUnlessItIsWanted(t *testing.T) {
	t.Parallel()
	url := served(t, false)
	for _, path := range []string{"/debug/pprof", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace"} {
		require.Equal(t, http.StatusNotFound, get(t, url+path).StatusCode, path)
	}
}
