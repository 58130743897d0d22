package testkit

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Watch reads all rows of the organization; the function that it returns fails
// the test when they have changed. When a key was last used doesn't count.
func (n *Tenant) Watch(t testing.TB) (unchanged func(t testing.TB)) {
	t.Helper()
	before := n.rows(t)
	return func(t testing.TB) {
		t.Helper()
		after := n.rows(t)
		for table := range before {
			require.Equal(t, before[table], after[table], "the table %s changed", table)
		}
	}
}

// rows are the organization's, as text, by table.
func (n *Tenant) rows(t testing.TB) map[string][]string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), n.app.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	tables := texts(t, c, `SELECT table_name FROM information_schema.columns
		WHERE table_schema = 'public' AND column_name = 'organization_id'`)
	require.NotEmpty(t, tables)
	all := map[string][]string{}
	for _, table := range tables {
		row := "x"
		if table == "api_keys" {
			row = "(x.id, x.hash, x.scope, x.expires_at, x.revoked_at)"
		}
		all[table] = texts(t, c, "SELECT "+row+"::text FROM "+table+" x WHERE organization_id = $1",
			n.Organization.ID.UUID().String())
		slices.Sort(all[table])
	}
	return all
}

func texts(t testing.TB, c *pgx.Conn, sql string, args ...any) []string {
	t.Helper()
	rows, err := c.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}
