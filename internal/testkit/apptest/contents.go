package apptest

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Watch reads all rows of the organization. The returned function fails the test if the rows have
// changed. It ignores the time of a key's last use.
func (n *Tenant) Watch(t testing.TB) (unchanged func(t testing.TB)) {
	t.Helper()
	before := n.rows(t)
	return func(t testing.TB) {
		t.Helper()
		after := n.rows(t)
		require.Equal(t, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)), "tables that have rows")
		for table := range before {
			require.Equal(t, before[table], after[table], "the table %s changed", table)
		}
	}
}

// readRows builds a single query of all tables that belong to an organization.
const readRows = `
SELECT string_agg(format('SELECT %L, %s::text FROM %I x WHERE organization_id = $1', c.relname,
  CASE c.relname WHEN 'api_keys' THEN '(x.id, x.hash, x.scope, x.expires_at, x.revoked_at)' ELSE 'x' END, c.relname), ' UNION ALL ')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind = 'r' AND a.attname = 'organization_id'`

// rowsQuery is the query that readRows has built. All databases have the same tables.
var rowsQuery struct {
	sync.Once
	text string
	err  error
}

// rows returns the organization's rows as text, by table.
func (n *Tenant) rows(t testing.TB) map[string][]string {
	t.Helper()
	q := &rowsQuery
	q.Do(func() { q.err = n.App.Pool.QueryRow(context.Background(), readRows).Scan(&q.text) })
	require.NoError(t, q.err)
	found, err := n.App.Pool.Query(t.Context(), q.text, n.Organization.ID.UUID().String())
	require.NoError(t, err)
	all := map[string][]string{}
	var table, row string
	_, err = pgx.ForEachRow(found, []any{&table, &row}, func() error {
		all[table] = append(all[table], row)
		return nil
	})
	require.NoError(t, err)
	for _, rows := range all {
		slices.Sort(rows)
	}
	require.Contains(t, all, "users", "every organization has an owner")
	return all
}

// idsAndTimes matches values that differ from run to run: ids in both forms, and times.
var idsAndTimes = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z]{3}_[0-9a-z]{26}|20\d\d-\d\d-\d\dT[0-9:.+Z]+`)

// Contents returns the organization's rows of a table as sorted text without ids and times. The
// result is the same for two organizations with the same history.
func (n *Tenant) Contents(t testing.TB, table string) []string {
	t.Helper()
	payload := "''"
	if table == "events" {
		payload = "convert_from(payload, 'UTF8')"
	}
	// The payload is added as text. The workflow's ids appear at an arbitrary time, and transaction
	// numbers are shared by all databases.
	rows, err := n.App.Pool.Query(t.Context(), fmt.Sprintf(
		`SELECT (to_jsonb(x) - 'payload' - 'workflow_id' - 'workflow_run_id' - 'changed_in')::text || %s FROM %s x WHERE organization_id = $1`,
		payload, table), n.Organization.ID.UUID())
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	for i := range all {
		all[i] = idsAndTimes.ReplaceAllString(all[i], "~")
	}
	slices.Sort(all)
	return all
}
