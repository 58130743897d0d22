package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"earshot/internal/devstack"
	"earshot/internal/testkit"
	"earshot/internal/testkit/production"
	"earshot/internal/testkit/tier"
)

// ours is the name of the service's database.
const ours = "earshot"

// deployment has databases that can be restored: one Postgres with all of them, and a
// temporal-server as in production.
type deployment struct {
	*program
	postgres *devstack.Postgres
	options  production.TemporalOptions
	temporal *production.Temporal
	client   client.Client
	webhook  string
	metrics  string

	mu sync.Mutex
	// well reports whether the receiver accepts deliveries.
	well bool
	// taken counts the accepted deliveries by post or entry.
	taken map[string]int
}

func deploy(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{postgres: startPostgres(t, nil), taken: map[string]int{}}
	programs, err := production.BuildPrograms(t.Context(), repository, t.Logf)
	require.NoError(t, err)
	d.options = production.TemporalOptions{
		Dir: t.TempDir(), Programs: programs, Database: d.postgres.URL("postgres"), Report: t.Logf,
	}
	d.startTemporal(t)
	t.Cleanup(func() { _ = d.temporal.Stop(context.Background()) })
	require.NoError(t, d.postgres.CreateDatabase(t.Context(), ours))
	port, err := devstack.FreePort()
	require.NoError(t, err)
	d.metrics = fmt.Sprintf("127.0.0.1:%d", port)
	migrate(t, d.postgres.URL(ours))
	d.program = newProgramOn(t, d.postgres.URL(ours), "TEMPORAL_ADDRESS="+d.temporal.Address(),
		"EARSHOT_WEBHOOK_RETRY_DELAYS=5s,5s,5s,5s",
		"EARSHOT_WEBHOOK_DISABLE_COUNTS=attempts") // So each failure is part of a streak.
	d.client = d.setUpTemporal()
	return d
}

func (d *deployment) startTemporal(t *testing.T) {
	t.Helper()
	var err error
	d.temporal, err = production.StartTemporal(t.Context(), d.options)
	require.NoError(t, err)
}

// subscribe makes a board and a webhook for its posts and entries.
func (d *deployment) subscribe(r *testkit.Receiver) {
	d.t.Helper()
	r.Answer(d.answer)
	d.board = d.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas"})
	status, made := d.send(http.MethodPost, "/v1/webhooks",
		map[string]any{"url": r.URL, "events": []string{"post.created", "changelog.published"}})
	require.Equal(d.t, http.StatusCreated, status)
	r.Verify(fmt.Sprint(made["secret"]))
	d.webhook = "/v1/webhooks/" + fmt.Sprint(made["id"])
}

func (d *deployment) answer(_ int, got testkit.Received) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.well {
		return http.StatusServiceUnavailable
	}
	var payload struct{ Post, Entry struct{ ID string } }
	_ = json.Unmarshal(got.Body, &payload) // An unreadable payload counts for the id "", which no test reads.
	d.taken[payload.Post.ID+payload.Entry.ID]++
	return http.StatusOK
}

func (d *deployment) recover(well bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.well = well
}

// times returns how often each was accepted.
func (d *deployment) times(of []string) (times []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range of {
		times = append(times, d.taken[id])
	}
	return times
}

// sql reads one value from the database.
func (d *deployment) sql(into any, question string, args ...any) error {
	c, err := pgx.Connect(d.t.Context(), d.postgres.URL(ours))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(d.t.Context()) }()
	return c.QueryRow(d.t.Context(), question, args...).Scan(into)
}

// attempted waits until the last delivery's attempt has failed, and returns its run.
func (d *deployment) attempted() (workflow string) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		return d.sql(&workflow, `SELECT workflow_id FROM (SELECT * FROM deliveries ORDER BY id DESC LIMIT 1) d
			WHERE status = 'pending' AND attempt_count > 0 AND lease_until IS NULL`) == nil
	}, waitLimit, pollInterval)
	return workflow
}

// everyState leaves deliveries in every possible state, and a recovery, a publication and a streak.
// No worker runs at the end. It returns the posts and entries that still have to arrive.
func (d *deployment) everyState(name string, worker *process) []string {
	d.t.Helper()
	d.recover(false)
	failed := d.postOf(name + " is recovered")
	require.NoError(d.t, d.client.CancelWorkflow(d.t.Context(), d.attempted(), ""))
	d.await("failed", `SELECT count(*) = 0 FROM deliveries WHERE status = 'pending'`)
	waiting := d.postOf(name + " waits for its second attempt")
	d.attempted()
	worker.kill()
	first := d.postOf(name + " waits for its first attempt")
	entry := d.must(http.MethodPost, "/v1/boards/"+d.board+"/changelog",
		map[string]any{"title": name, "publishedAt": time.Now().Add(5 * time.Second).UTC().Format(time.RFC3339Nano)})
	status, _ := d.send(http.MethodPost, d.webhook+"/recover",
		map[string]any{"since": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)})
	require.Equal(d.t, http.StatusAccepted, status)
	return []string{failed, waiting, first, entry}
}

func (d *deployment) await(what, question string) {
	d.t.Helper()
	require.EventuallyWithT(d.t, func(collect *assert.CollectT) {
		var holds bool
		require.NoError(collect, d.sql(&holds, question))
		require.True(collect, holds, what)
	}, afterKill, pollInterval)
}

// quiet waits until all deliveries have ended in the database and all runs in Temporal.
func (d *deployment) quiet() {
	d.t.Helper()
	d.await("all has ended", `SELECT NOT EXISTS (SELECT FROM deliveries WHERE status = 'pending')
		AND NOT EXISTS (SELECT FROM recoveries WHERE status = 'running')
		AND NOT EXISTS (SELECT FROM changelog_entries WHERE state = 'scheduled')`)
	const all = "WorkflowType IN ('deliver_webhooks', 'publish_changelog', 'recover_webhook', 'failure_streak')"
	require.EventuallyWithT(d.t, func(collect *assert.CollectT) {
		require.Empty(collect, there(collect, d.client, runs(collect, d.client, all+" AND ExecutionStatus = 'Running'")))
	}, afterKill, pollInterval, "every run ends")
	requireNoFailedTask(d.t, d.client, there(d.t, d.client, runs(d.t, d.client, all)))
}

// there leaves out runs that exist only in Temporal's visibility lists, whose database was restored
// from another time.
func there(t require.TestingT, c client.Client, listed []*workflow.WorkflowExecutionInfo) (found []*workflow.WorkflowExecutionInfo) {
	for _, run := range listed {
		_, err := c.DescribeWorkflowExecution(context.Background(), run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId())
		var none *serviceerror.NotFound
		if errors.As(err, &none) {
			continue
		}
		require.NoError(t, err)
		found = append(found, run)
	}
	return found
}

// hourLater moves the due times an hour back, as after a restore that took an hour.
func (d *deployment) hourLater() {
	d.t.Helper()
	var n int
	require.NoError(d.t, d.sql(&n, `WITH entries AS (
		UPDATE changelog_entries SET published_at = published_at - interval '1 hour' WHERE state = 'scheduled'
	), pending AS (
		UPDATE deliveries SET next_attempt_at = next_attempt_at - interval '1 hour', lease_until = NULL
		WHERE status = 'pending' RETURNING 1
	) SELECT count(*) FROM pending`))
	require.Equal(d.t, 2, n)
}

// swept reads a metric of the worker.
func (d *deployment) swept(found string) int {
	d.t.Helper()
	answer, err := httpClient.Get("http://" + d.metrics + "/metrics")
	require.NoError(d.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(d.t, err)
	match := regexp.MustCompile(`earshot_swept_total\{[^}]*found="` + found + `"[^}]*\} (\d+)`).FindSubmatch(text)
	if match == nil {
		return 0
	}
	n, err := strconv.Atoi(string(match[1]))
	require.NoError(d.t, err)
	return n
}

// shell runs commands of the documentation page in a directory.
func (d *deployment) shell(dir, commands string, settings ...string) string {
	d.t.Helper()
	u, err := url.Parse(d.postgres.URL(ours))
	require.NoError(d.t, err)
	password, _ := u.User.Password()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = dir
	cmd.Env = slices.Concat(d.env, settings, []string{
		"PGHOST=" + u.Hostname(), "PGPORT=" + u.Port(), "PGUSER=" + u.User.Username(), "PGPASSWORD=" + password,
		"PATH=" + strings.Join([]string{d.postgres.Programs(), filepath.Dir(earshot()), os.Getenv("PATH")}, string(os.PathListSeparator)),
	})
	out, err := cmd.CombinedOutput()
	require.NoError(d.t, err, "%s", out)
	return string(out)
}

// TestABackupOfEitherDatabaseThatIsOlderThanTheOtherLosesNothing takes a backup and goes on
// working. It then restores Temporal's database alone and later the service's alone, by the
// commands of docs/backup.md. The keys are rotated meanwhile.
func TestABackupOfEitherDatabaseThatIsOlderThanTheOtherLosesNothing(t *testing.T) {
	tier.Slow(t, "restores backups of two databases")
	t.Parallel()
	d, r, page, early, late := deploy(t), testkit.NewReceiver(t), readBlocks(t, "backup.md"), t.TempDir(), t.TempDir()
	api, worker := d.serveAlone(), d.worker()
	d.subscribe(r)
	before := d.everyState("Before", worker)
	d.shell(early, page.named("back-up"))
	worker = d.worker()
	d.recover(true)
	d.quiet()
	require.Equal(t, []int{1, 1, 1, 1}, d.times(before))
	after := d.everyState("After", worker)
	copied := d.syncCursor("/v1/posts?sort=updated")
	api.kill()
	d.shell(late, page.named("back-up"))
	old, fresh := d.setting("EARSHOT_SECRET_KEYS"), "new:"+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("n", 32)))
	d.shell(repository, "earshot secrets rotate", "EARSHOT_SECRET_KEYS="+fresh+","+old)
	d.env = append(d.env, "EARSHOT_SECRET_KEYS="+fresh)

	// Temporal's database is older, except for its visibility lists, which then have missing runs.
	require.NoError(t, d.temporal.Stop(t.Context()))
	d.shell(early, page.named("restore"), "databases=temporal")
	worker, api = d.goOn(page)
	require.Equal(t, []int{1, 1, 1, 1}, d.times(before), "what its rows say is done isn't done again")
	require.Equal(t, []int{1, 1, 1, 1}, d.times(after))
	worker.kill()
	api.kill()

	// The service's database is older.
	require.NoError(t, d.temporal.Stop(t.Context()))
	d.shell(early, page.named("restore"), "databases="+ours)
	d.shell(late, page.named("restore"), "databases="+strings.Join(production.TemporalDatabases(), " "))
	require.Regexp(t, `test +1 +0 +0 +false`, d.shell(repository, page.named("list-keys")), "the key of the backup's time is missing")
	d.env = append(d.env, "EARSHOT_SECRET_KEYS="+fresh+","+old)
	require.Regexp(t, `test +1 +0 +0 +true`, d.shell(repository, page.named("list-keys")))
	require.Contains(t, d.shell(repository, page.named("begin-numbers")), "UPDATE 1", "whoever reads the feed is told")
	d.goOn(page)
	require.Equal(t, []int{2, 2, 2, 2}, d.times(before), "as far as its rows know, nobody had it")
	require.Equal(t, []int{1, 1, 1, 1}, d.times(after), "what was acknowledged after the backup is gone")
	status, _ := d.send(http.MethodGet, "/v1/posts?sort=updated&cursor="+url.QueryEscape(copied), nil)
	require.Equal(t, http.StatusGone, status, "whoever keeps a copy is told that it has what is gone")
	for _, id := range after[:3] {
		status, _ = d.send(http.MethodGet, "/v1/posts/"+id, nil)
		require.Equal(t, http.StatusNotFound, status)
	}
	for _, got := range r.All() {
		require.NoError(t, got.Invalid)
	}
	page.requireAllUsed()
}

// syncCursor returns the cursor from which a copy of a list goes on.
func (d *deployment) syncCursor(path string) string {
	d.t.Helper()
	r, err := http.NewRequest(http.MethodGet, d.url+path, nil)
	require.NoError(d.t, err)
	r.Header.Set("Authorization", "Bearer "+d.key)
	answer, err := d.program.client.Do(r)
	require.NoError(d.t, err)
	defer func() { _ = answer.Body.Close() }()
	var list struct{ SyncCursor string }
	require.NoError(d.t, json.NewDecoder(answer.Body).Decode(&list))
	require.NotEmpty(d.t, list.SyncCursor)
	return list.SyncCursor
}

// goOn starts everything after a restore that took an hour, and waits until no work is left.
func (d *deployment) goOn(page *blocks) (worker, api *process) {
	d.t.Helper()
	d.hourLater()
	d.startTemporal(d.t)
	d.shell(repository, page.named("prepare"))
	d.recover(true)
	worker = d.worker("EARSHOT_METRICS_LISTEN=" + d.metrics)
	api = d.serveAlone()
	d.quiet()
	for _, found := range []string{"never_started", "lost", "entries", "recoveries"} {
		require.Positive(d.t, d.swept(found), found)
	}
	require.Regexp(d.t, `(?m)^ +0$`, d.shell(repository, page.named("count-overdue")))
	return worker, api
}
