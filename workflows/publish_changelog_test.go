package workflows_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"earshot/internal/testkit"
)

// changelog is a board whose publications a receiver hears of.
type changelog struct {
	*testkit.Tenant
	app      *testkit.App
	receiver *testkit.Receiver
	path     string
}

func newChangelog(t *testing.T) *changelog {
	t.Helper()
	app := testkit.Start(t, testkit.Options{Worker: true})
	c := &changelog{app.Tenant(t), app, testkit.NewReceiver(t), ""}
	c.Register(t, c.receiver, "changelog.published")
	c.path = "/v1/boards/" + c.ID(t, "/v1/boards", map[string]any{"name": "Ideas"}) + "/changelog"
	return c
}

func (c *changelog) schedule(t *testing.T, at time.Time) string {
	t.Helper()
	return c.ID(t, c.path, map[string]any{"title": "Dark at last", "publishedAt": at})
}

// move sets the moment, or takes it away.
func (c *changelog) move(t *testing.T, id string, at any) map[string]any {
	t.Helper()
	return c.Make(t, http.MethodPatch, "/v1/changelog/"+id, map[string]any{"publishedAt": at})
}

// waits comes back when the run has begun to wait for the nth time.
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
	}, testkit.Wait, 20*time.Millisecond)
}

// ends comes back when the run is over.
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
