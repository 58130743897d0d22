package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/testkit"
)

// glance lies between two looks at a condition.
const glance = 10 * time.Millisecond

// hold locks a post's row until release.
func hold(t *testing.T, app *testkit.App, post string) (release func()) {
	t.Helper()
	var id publicid.Post
	require.NoError(t, id.UnmarshalText([]byte(post)))
	c := connect(t, app)
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM posts WHERE id = $1 FOR UPDATE", id.UUID().String())
	require.NoError(t, err)
	return func() {
		t.Helper()
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

func connect(t *testing.T, app *testkit.App) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), app.Config.DatabaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

// awaitWaiting waits until so many connections of the database wait for a lock.
func awaitWaiting(t *testing.T, app *testkit.App, n int) {
	t.Helper()
	c := connect(t, app)
	require.Eventually(t, func() bool {
		var waiting int
		err := c.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting >= n
	}, testkit.Wait, glance)
}

// The service has 8 connections here, and half of them may wait for one
// organization.
func TestRequestsThatWaitForAHotPostKeepNobodyElseWaiting(t *testing.T) {
	t.Parallel()
	app := testkit.Start(t, testkit.Options{})
	n, other := newFixture(t, app), newFixture(t, app)
	release := hold(t, app, n.ids["postId"])
	statuses := make(chan testkit.Answer, 64)
	for range cap(statuses) {
		go func() { statuses <- n.Do(t, http.MethodPost, "/v1/posts/"+n.ids["postId"]+"/votes", nil) }()
	}
	awaitWaiting(t, app, 4)
	for range 10 {
		require.Equal(t, http.StatusOK, other.Do(t, http.MethodGet, "/v1/boards", nil).Status)
		require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/boards", nil).Status, "the same organization reads on")
		other.ID(t, "/v1/boards/"+other.ids["boardId"]+"/posts", object{"title": "Meanwhile"})
	}
	for range cap(statuses) - 4 {
		a := <-statuses
		require.Equal(t, http.StatusTooManyRequests, a.Status, "%s", a.Raw)
		require.Equal(t, "1", a.Header.Get("Retry-After"))
	}
	release()
	for range 4 {
		require.Less(t, (<-statuses).Status, http.StatusMultipleChoices)
	}
}

func TestABodyOfManyFailuresIsAnsweredInShort(t *testing.T) {
	t.Parallel()
	n := testkit.Start(t, testkit.Options{}).Tenant(t)
	events := strings.Repeat(`"x",`, 100_000) + `"x"`
	a := n.Do(t, http.MethodPost, "/v1/webhooks", `{"url":"https://a.example/","events":[`+events+`]}`)
	require.Equal(t, http.StatusUnprocessableEntity, a.Status)
	require.Len(t, a.Fields(), 1000)
	require.Less(t, len(a.Raw), 250_000)
}
