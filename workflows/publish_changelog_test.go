package workflows_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"

	"earshot/activities"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/workflows"
)

// changelog is a board with a receiver for its publications.
type changelog struct {
	*apptest.Tenant
	app      *apptest.App
	receiver *testkit.Receiver
	path     string
}

func newChangelog(t *testing.T) *changelog {
	t.Helper()
	app := working.Start(t)
	c := &changelog{app.Tenant(t), app, testkit.NewReceiver(t), ""}
	c.Register(t, c.receiver, "changelog.published")
	c.path = "/v1/boards/" + c.ID(t, "/v1/boards", map[string]any{"name": "Ideas"}) + "/changelog"
	return c
}

func (c *changelog) schedule(t *testing.T, at time.Time) string {
	t.Helper()
	return c.ID(t, c.path, map[string]any{"title": "Dark at last", "publishedAt": at})
}

// move sets the entry's publication time, or removes it.
func (c *changelog) move(t *testing.T, id string, at any) map[string]any {
	t.Helper()
	return c.Make(t, http.MethodPatch, "/v1/changelog/"+id, map[string]any{"publishedAt": at})
}

// waits returns when the run has begun to wait for the nth time.
func (c *changelog) waits(t *testing.T, id string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		timers := 0
		for events := c.app.Temporal.GetWorkflowHistory(t.Context(), id, "", false, 0); events.HasNext(); {
			e, err := events.Next()
			if err != nil {
				return false
			}
			if e.GetEventType() == enumspb.EVENT_TYPE_TIMER_STARTED {
				timers++
			}
		}
		return timers == n
	}, testkit.Wait, testkit.Tick)
}

// ends returns when the run has ended.
func (c *changelog) ends(t *testing.T, id string) {
	t.Helper()
	require.NoError(t, c.app.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
}

func TestAScheduledEntryIsPublishedOnceWhenItIsDue(t *testing.T) {
	t.Parallel()
	c := newChangelog(t)
	due := time.Now().Add(500 * time.Millisecond)
	id := c.schedule(t, due)
	require.NoError(t, c.receiver.Await(t, 1)[0].Invalid)
	require.False(t, time.Now().Before(due), "published too early")
	c.ends(t, id)
	entry := c.Make(t, http.MethodGet, "/v1/changelog/"+id, nil)
	require.Equal(t, "published", entry["state"])
	require.Len(t, c.receiver.All(), 1)
}

func TestAMomentThatMovesForwardIsFollowed(t *testing.T) {
	t.Parallel()
	c := newChangelog(t)
	id := c.schedule(t, time.Now().Add(time.Hour))
	c.waits(t, id, 1)
	c.move(t, id, time.Now().Add(300*time.Millisecond))
	c.receiver.Await(t, 1)
	c.ends(t, id)
}

func TestAnEntryThatBecomesADraftAgainOrIsDeletedIsNeverPublished(t *testing.T) {
	t.Parallel()
	c := newChangelog(t)
	drafted, deleted := c.schedule(t, time.Now().Add(time.Hour)), c.schedule(t, time.Now().Add(time.Hour))
	c.waits(t, drafted, 1)
	c.waits(t, deleted, 1)
	c.move(t, drafted, nil)
	c.Make(t, http.MethodDelete, "/v1/changelog/"+deleted, nil)
	c.ends(t, drafted)
	c.ends(t, deleted)
	require.Equal(t, "draft", c.Make(t, http.MethodGet, "/v1/changelog/"+drafted, nil)["state"])
	require.Empty(t, c.receiver.All())
}

func TestAScheduledEntryIsPublishedWithItsLatestEdits(t *testing.T) {
	t.Parallel()
	c := newChangelog(t)
	id := c.schedule(t, time.Now().Add(time.Hour))
	c.waits(t, id, 1)
	c.Make(t, http.MethodPatch, "/v1/changelog/"+id, map[string]any{"title": "Darker than ever"})
	c.move(t, id, time.Now().Add(300*time.Millisecond))
	require.Contains(t, string(c.receiver.Await(t, 1)[0].Body), `"title":"Darker than ever"`)
	c.ends(t, id)
}

func TestAScheduleYearsAheadWaitsAndCanBeMoved(t *testing.T) {
	t.Parallel()
	c := newChangelog(t)
	id := c.schedule(t, time.Now().AddDate(15, 0, 0))
	c.waits(t, id, 1)
	answer, err := c.app.Temporal.QueryWorkflow(t.Context(), id, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var shown sdkpb.WorkflowMetadata
	require.NoError(t, answer.Get(&shown))
	require.Contains(t, shown.GetCurrentDetails(), time.Now().AddDate(15, 0, 0).UTC().Format("2006-01-02"))
	c.move(t, id, time.Now().Add(300*time.Millisecond))
	c.receiver.Await(t, 1)
	c.ends(t, id)
}

func TestAnEntryThatCameDueWhileNoWorkerRanIsPublishedOnceByTheNext(t *testing.T) {
	t.Parallel()
	database, temporal := testkit.Database(t), testkit.Namespace(t)
	// There is no worker, so the run is started and waits for its first task.
	waiting := apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &temporal})
	c := &changelog{waiting.Tenant(t), waiting, testkit.NewReceiver(t), ""}
	c.Register(t, c.receiver, "changelog.published")
	c.path = "/v1/boards/" + c.ID(t, "/v1/boards", map[string]any{"name": "Ideas"}) + "/changelog"
	due := time.Now().Add(200 * time.Millisecond)
	id := c.schedule(t, due)
	require.Eventually(t, func() bool { return time.Now().After(due) }, testkit.Wait, 10*time.Millisecond)
	// Two processes start together, each with its own sweep.
	for range 2 {
		apptest.Start(t, apptest.Options{DatabaseURL: database, Temporal: &temporal, Worker: true})
	}
	c.receiver.Await(t, 1)
	c.ends(t, id)
	require.Equal(t, "published", c.Make(t, http.MethodGet, "/v1/changelog/"+id, nil)["state"])
	require.Len(t, c.receiver.All(), 1)
}

// TestAClockThatJumpsPublishesNeitherEarlyNorTwice sets Temporal's clock, which the workflow uses,
// ahead of the worker's, which decides. The run looks too early and looks again.
func TestAClockThatJumpsPublishesNeitherEarlyNorTwice(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	c := &changelog{app.Tenant(t), app, testkit.NewReceiver(t), ""}
	c.path = "/v1/boards/" + c.ID(t, "/v1/boards", map[string]any{"name": "Ideas"}) + "/changelog"
	due := time.Now().Add(2 * time.Second)
	id, err := publicid.Parse[publicid.ChangelogEntry](c.schedule(t, due))
	require.NoError(t, err)
	env := environment(t)
	env.SetStartTime(time.Now().Add(24 * time.Hour)) // a day ahead
	looks := 0
	publish := activities.NewChangelog(app.Feedback)
	env.RegisterActivityWithOptions(func(ctx context.Context, p activities.PublishParams) (activities.PublishResult, error) {
		looks++
		return publish.PublishEntry(ctx, p)
	}, activity.RegisterOptions{Name: activities.PublishName})
	env.ExecuteWorkflow(workflows.PublishChangelog, activities.PublishParams{Entry: id})
	require.NoError(t, env.GetWorkflowError())
	require.Greater(t, looks, 1, "it looked too early")
	require.False(t, time.Now().Before(due))
	entry := c.Make(t, http.MethodGet, "/v1/changelog/"+id.String(), nil)
	require.Equal(t, "published", entry["state"])
}
