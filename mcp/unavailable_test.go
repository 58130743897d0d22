package mcp_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestAToolThatWaitsForTooLongSaysSoAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{DatabaseURL: testkit.ImpatientDatabase(t)})
	a := newAgent(t, app, app.Tenant(t).Key)
	c, err := pgx.Connect(t.Context(), app.Config.DatabaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE boards IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	got := a.call(t, "list_boards", object{})
	require.True(t, got.failed)
	require.Equal(t, "ERR_UNAVAILABLE", got.code(), got.raw)
	require.NoError(t, tx.Rollback(t.Context()))
	require.False(t, a.call(t, "list_boards", object{}).failed)
}
