package testkit

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/postgres"
)

// Queries is a Tracer that records the queries of a store.
type Queries struct {
	mu  sync.Mutex
	all []pgx.TraceQueryStartData
}

var _ interface {
	pgx.QueryTracer
	pgx.BatchTracer
} = (*Queries)(nil)

// All returns the statements so far.
func (q *Queries) All() []pgx.TraceQueryStartData {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all
}

// Last returns the last statement.
func (q *Queries) Last() pgx.TraceQueryStartData {
	all := q.All()
	return all[len(all)-1]
}

// TraceQueryStart records a statement.
func (q *Queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, asked pgx.TraceQueryStartData) context.Context {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, asked)
	return ctx
}

// TraceQueryEnd does nothing.
func (*Queries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart does nothing.
func (*Queries) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery records a statement of a batch.
func (q *Queries) TraceBatchQuery(ctx context.Context, c *pgx.Conn, asked pgx.TraceBatchQueryData) {
	q.TraceQueryStart(ctx, c, pgx.TraceQueryStartData{SQL: asked.SQL, Args: asked.Args})
}

// TraceBatchEnd does nothing.
func (*Queries) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// Asked returns a store on a new database, a second connection for plans, and the store's recorded
// queries. The rows that the test inserts by the second connection run no triggers and no checks of
// foreign keys, which take most of the time of thousands of rows.
func Asked(t testing.TB) (*postgres.DB, *pgx.Conn, *Queries) {
	t.Helper()
	url, asked := Database(t), &Queries{}
	s, err := postgres.Open(postgres.Options{URL: url, MaxConns: 1, Tracer: asked})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	_, err = c.Exec(t.Context(), "SET session_replication_role = replica")
	require.NoError(t, err)
	return s, c, asked
}

var parameter = regexp.MustCompile(`\$\d+`)

// RequireIndexed requires that a plan finds rows of a table by an index on a column. The planner
// may use any index whose condition contains the column.
func RequireIndexed(t testing.TB, plan, table, column string) {
	t.Helper()
	require.NotRegexp(t, `Seq Scan on `+table+`\b`, plan, "the plan reads the whole table")
	require.Regexp(t, `Index Cond: .*\b`+column+`\b`, plan)
}

// KeptPlan returns the generic plan of a statement. The connection must have plan_cache_mode =
// force_generic_plan.
func KeptPlan(t testing.TB, c *pgx.Conn, q pgx.TraceQueryStartData) string {
	t.Helper()
	_, err := c.Exec(t.Context(), "PREPARE kept AS "+q.SQL)
	require.NoError(t, err)
	execute := "EXPLAIN EXECUTE kept"
	// The placeholders are counted in the SQL, because the arguments include options of
	// database/sql.
	if n := len(slices.Compact(slices.Sorted(slices.Values(parameter.FindAllString(q.SQL, -1))))); n > 0 {
		execute += " (" + strings.Repeat("NULL, ", n-1) + "NULL)"
	}
	rows, err := c.Query(t.Context(), execute)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "DEALLOCATE kept")
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}
