package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// growing is a table that only the test writes to, and that autovacuum leaves alone.
type growing struct {
	t *testing.T
	c *pgx.Conn
}

func newGrowing(t *testing.T, url, table string) *growing {
	t.Helper()
	g := &growing{t, fixture.Connect(t, url)}
	g.exec("ALTER TABLE " + table + " SET (autovacuum_enabled = false)")
	return g
}

// exec runs a statement and makes Postgres count its rows immediately.
func (g *growing) exec(sql string, args ...any) {
	g.t.Helper()
	for _, sql := range []string{sql, "SELECT pg_stat_force_next_flush()"} {
		_, err := g.c.Exec(g.t.Context(), sql, args...)
		require.NoError(g.t, err)
		args = nil
	}
}

const addSuppressions = `INSERT INTO mail_suppressions (email_hash)
	SELECT sha256((random() || ':' || n)::bytea) FROM generate_series(1, $1::int) n`

func TestATableHasStatisticsAgainWhenItHasDoubled(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, g := fixture.Open(t, url), newGrowing(t, url, "mail_suppressions")
	for _, step := range []struct {
		rows int
		want []string
	}{
		{999, nil}, {1, []string{"mail_suppressions"}}, {999, nil}, {2, []string{"mail_suppressions"}}, {0, nil},
	} {
		g.exec(addSuppressions, step.rows)
		made, err := s.MakeStatistics(t.Context())
		require.NoError(t, err)
		require.Equal(t, step.want, made)
	}
	g.exec("UPDATE mail_suppressions SET created_at = now()")
	g.exec("UPDATE mail_suppressions SET created_at = now()")
	made, err := s.MakeStatistics(t.Context())
	require.NoError(t, err)
	require.Empty(t, made, "rows that change are for autovacuum")
}

func TestATableThatWasRestoredHasStatistics(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, g := fixture.Open(t, url), newGrowing(t, url, "mail_suppressions")
	g.exec(addSuppressions, 1500)
	g.exec("REINDEX TABLE mail_suppressions") // notes the number of rows, as an index that is made after the rows does
	made, err := s.MakeStatistics(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"mail_suppressions"}, made)
}

func TestStatisticsSkipALockedTable(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s, g := fixture.Open(t, url), newGrowing(t, url, "mail_suppressions")
	g.exec(addSuppressions, 1000)
	other, err := fixture.Connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), "LOCK TABLE mail_suppressions IN SHARE UPDATE EXCLUSIVE MODE")
	require.NoError(t, err)
	_, err = s.MakeStatistics(t.Context())
	require.NoError(t, err)
	require.Nil(t, g.analyzed())
	require.NoError(t, other.Rollback(t.Context()))
	_, err = s.MakeStatistics(t.Context())
	require.NoError(t, err)
	require.NotNil(t, g.analyzed())
}

func (g *growing) analyzed() (at *time.Time) {
	g.t.Helper()
	require.NoError(g.t, g.c.QueryRow(g.t.Context(), "SELECT last_analyze FROM pg_stat_user_tables WHERE relname = 'mail_suppressions'").Scan(&at))
	return at
}
