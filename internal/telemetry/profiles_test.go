package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/telemetry"
)

// served starts a metrics server and returns its URL.
func served(t *testing.T, profiles bool) (url string) {
	t.Helper()
	m, err := telemetry.New("127.0.0.1:0", profiles, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, m.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, m.Stop()) })
	return "http://" + m.Address()
}

// get returns the status and the body of an answer.
func get(t *testing.T, url string) (status int, body []byte) {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, body
}

func TestProfilesAreServedBesideTheMetricsWhenTheyAreWanted(t *testing.T) {
	t.Parallel()
	url := served(t, true)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/symbol", "/metrics"} {
		status, _ := get(t, url+path)
		require.Equal(t, http.StatusOK, status, path)
	}
	for _, path := range []string{"heap", "allocs", "profile?seconds=1"} {
		status, body := get(t, url+"/debug/pprof/"+path)
		require.Equal(t, http.StatusOK, status, path)
		profile, err := gzip.NewReader(bytes.NewReader(body))
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
		status, _ := get(t, url+path)
		require.Equal(t, http.StatusNotFound, status, path)
	}
}
