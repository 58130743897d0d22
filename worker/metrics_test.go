package worker_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// scrapable is a service with metrics and profiles, for tests whose promise holds regardless of other requests.
var scrapable = apptest.Shared{Worker: true, Environ: []string{"EARSHOT_METRICS_LISTEN=127.0.0.1:0", "EARSHOT_PROFILES=true"}}

// scraped returns the response of the metrics listener to a path.
func scraped(t require.TestingT, app *apptest.App, path string) string {
	answer, err := http.Get("http://" + app.Metrics.Address() + path)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// measured starts a service with metrics.
func measured(t *testing.T, o apptest.Options) *apptest.App {
	t.Helper()
	o.Environ = append(o.Environ, "EARSHOT_METRICS_LISTEN=127.0.0.1:0")
	return apptest.Start(t, o)
}

func TestProfilesAreServedWhereTheMetricsAreAndNotWhereTheAPIIs(t *testing.T) {
	t.Parallel()
	app := scrapable.Start(t)
	require.Contains(t, scraped(t, app, "/debug/pprof/"), "goroutine")
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/v1/debug/pprof/"} {
		answer, err := http.Get(app.URL + path)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusNotFound, answer.StatusCode, path)
	}
}

func TestMetricsTellOfAttemptsSweepsAndTheRetention(t *testing.T) {
	t.Parallel()
	r := testkit.NewReceiver(t)
	// The first delivery succeeds at its second attempt.
	r.Answer(func(n int, _ testkit.Received) int { return map[bool]int{true: 500, false: 200}[n == 1] })
	app := measured(t, apptest.Options{Worker: true})
	seed(t, app, r)
	r.Await(t, 2)
	sweep(t, app)
	newOld(t, app)
	removed(t, removal(t, app))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		text := scraped(c, app, "/metrics")
		for _, line := range []string{
			`earshot_attempts_total\{error="http_status",result="retry",task_queue="earshot"\} 1`,
			`earshot_attempts_total\{error="",result="succeeded",task_queue="earshot-later"\} 1`,
			`earshot_attempt_duration_seconds_count\{result="retry"\} 1`,
			`earshot_first_attempt_delay_seconds_count\{put_off="no"\} 1`,
			`earshot_delivered_delay_seconds_count 1`,
			`earshot_deliveries_total\{error="",outcome="succeeded"\} 1`,
			`earshot_group_size_bucket\{le="1"\} 1`,
			`earshot_waiting_starts 0`,
			`earshot_request_duration_seconds_count\{code="201",operation="createPost"\} 1`,
			`earshot_oldest_unstarted_seconds \d`,
			`earshot_disabled_webhooks\{reason="failures"\} 0`,
			`earshot_failing_webhooks \d`,
			fmt.Sprint(`earshot_database_connections_max `, app.Config.DatabaseMaxConns),
			`earshot_database_acquires_total \d`,
			`earshot_sweeps_total\{part="deliveries",result="done"\} [1-9]`,
			`earshot_sweeps_total\{part="streaks",result="failed"\} 0`,
			`earshot_emails_total\{result="sent"\} 0`,
			// The first sweep may find the delivery before it is started.
			`earshot_swept_total\{found="never_started"\} [01]`,
			`earshot_swept_total\{found="lost"\} 0`,
			`earshot_swept_total\{found="entries"\} 0`,
			`earshot_removed_total\{kind="deliveries"\} 1`,
			`earshot_removed_total\{kind="events"\} 1`,
			`earshot_removed_total\{kind="recoveries"\} 0`,
			// The SDK's own metric, with a bound in seconds.
			`temporal_workflow_task_execution_latency_seconds_bucket\{.*le="0.25".*\}`,
			`go_goroutines \d+`,
		} {
			require.Regexp(c, line, text)
		}
	}, testkit.Wait, testkit.Tick)
}

// rare are metrics of the SDK that appear only with the first failure or the first full cache.
var rare = []string{
	"temporal_request_failure_total", "temporal_workflow_failed_total", "temporal_sticky_cache_forced_eviction_total",
	"temporal_activity_schedule_to_start_latency_seconds_bucket", "temporal_workflow_task_execution_failed_total",
}

func TestAlertsAndDashboardsAskForMetricsThatAProcessHas(t *testing.T) {
	t.Parallel()
	app, r := scrapable.Start(t), testkit.NewReceiver(t)
	seed(t, app, r)
	r.Await(t, 1)
	sweep(t, app)
	var asked []string
	for _, pattern := range []string{"prometheus/records.yml", "prometheus/alerts.yml", "grafana/dashboards/*.json"} {
		files, err := filepath.Glob(filepath.Join(testkit.Root(), "deploy", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			// Other tests compare our own metrics with the operators' page, and the page with the
			// code.
			asked = append(asked, regexp.MustCompile(`\b(temporal|go|process)_[a-z0-9_]+[({\[]`).FindAllString(string(text), -1)...)
		}
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	require.Greater(t, len(asked), 10)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		text := scraped(c, app, "/metrics")
		for _, name := range asked {
			if name = strings.TrimRight(name, "({["); !slices.Contains(rare, name) {
				require.True(c, strings.Contains(text, "\n"+name+" ") || strings.Contains(text, "\n"+name+"{"), name)
			}
		}
	}, testkit.Wait, testkit.Tick)
}

func TestMetricsWithoutAWorkerShowUnstartedDeliveries(t *testing.T) {
	t.Parallel()
	// Nothing listens on port 1, so committed deliveries are never started.
	app := measured(t, apptest.Options{Temporal: &client.Options{HostPort: "127.0.0.1:1"}})
	seed(t, app, testkit.NewReceiver(t))
	text := scraped(t, app, "/metrics")
	require.Regexp(t, `(?m)^earshot_oldest_unstarted_seconds (0\.0*[1-9]|[1-9])`, text)
	require.Regexp(t, `(?m)^earshot_oldest_overdue_seconds (0\.0*[1-9]|[1-9])`, text)
	require.Regexp(t, `(?m)^earshot_waiting_starts [01]$`, text, "1, or in the hands of who starts it")
}

func TestMetricsTellWhomTheRateLimitRefused(t *testing.T) {
	t.Parallel()
	app := measured(t, apptest.Options{Environ: []string{"EARSHOT_RATE_LIMIT=3"}})
	n := app.Tenant(t)
	for range 4 {
		n.Do(t, http.MethodGet, "/v1/boards", nil)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		text := scraped(c, app, "/metrics")
		require.Regexp(c, `earshot_rate_limit_refusals_total\{limit="key"\} 1\n`, text)
		require.Regexp(c, `earshot_rate_limit_refusals_total\{limit="refused_keys"\} 0\n`, text)
		require.Regexp(c, `earshot_request_duration_seconds_count\{code="429",operation="listBoards"\} 1\n`, text)
	}, testkit.Wait, testkit.Tick)
}

func TestMetricsNameNoWebhookAndNoOrganization(t *testing.T) {
	t.Parallel()
	app, r := scrapable.Start(t), testkit.NewReceiver(t)
	seed(t, app, r)
	r.Await(t, 1)
	sweep(t, app)
	require.NotRegexp(t, `(whk|org|dlv|evt)_[0-9a-z]{26}`, scraped(t, app, "/metrics"))
}

func TestTheMetricsListenerAnswersHealthChecksOfAWorker(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"status":"ok"}`, scraped(t, scrapable.Start(t), "/healthz"))
}

func TestNothingListensWithoutAnAddressForMetrics(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	require.Empty(t, app.Metrics.Address())
}
