package api_test

import (
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
