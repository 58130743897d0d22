package postgres_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/devstack"
	"earshot/internal/migrate"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/testkit/fixture"
	"earshot/internal/testkit/production"
	"earshot/internal/testkit/tier"
)

// durable starts a Postgres for one test. Its committed data survives a kill.
func durable(t *testing.T, o devstack.PostgresOptions) *devstack.Postgres {
	t.Helper()
	o.Durable, o.Report = true, t.Logf
	p, err := devstack.StartPostgres(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(context.Background())) })
	return p
}

// ownDir is a directory that the user postgres can enter. The parent of t.TempDir is closed to
// other users.
func ownDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	t.Cleanup(func() { require.NoError(t, devstack.Remove(dir)) })
	return dir
}

// After a crash, Postgres continues behind the last number in its log on disk. The log may lack the
// number of a transaction that was rolled back.
func TestACopyGoesNoFurtherThanTheNumbersThatACrashOfPostgresLeaves(t *testing.T) {
	tier.Slow(t, "starts a durable Postgres and a copy")
	t.Parallel()
	o := devstack.PostgresOptions{Dir: ownDir(t)}
	p := durable(t, o)
	require.NoError(t, p.CreateDatabase(t.Context(), "crashed"))
	s, c := fixture.Open(t, p.URL("crashed")), fixture.Connect(t, p.URL("crashed"))
	_, err := migrate.Up(t.Context(), s)
	require.NoError(t, err)
	// The checkpoint puts the log so far on disk. After it, the WAL writer stays idle for 10
	// seconds.
	_, err = c.Exec(t.Context(), "CHECKPOINT")
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "ALTER SYSTEM SET wal_writer_delay = 10000")
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "SELECT pg_reload_conf()")
	require.NoError(t, err)
	before, err := page.ReadChanges(t.Context(), s)
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "DO $$ BEGIN FOR i IN 1..50 LOOP PERFORM pg_current_xact_id(); ROLLBACK; END LOOP; END $$")
	require.NoError(t, err)
	rolledBack, err := page.ReadChanges(t.Context(), s)
	require.NoError(t, err)
	require.GreaterOrEqual(t, rolledBack.Settled, before.Settled+50)
	require.Less(t, rolledBack.Durable, rolledBack.Settled)

	p.Kill()
	c = fixture.Connect(t, durable(t, o).URL("crashed"))
	var given int64
	require.NoError(t, c.QueryRow(t.Context(), "SELECT change_number()").Scan(&given))
	require.Less(t, given, rolledBack.Settled, "a number that was settled is given again")
	require.GreaterOrEqual(t, given, rolledBack.Durable)
}

// A standby shows other rows than its primary and can't list the running transactions.
func TestAStandbyDoesNotSayWhichChangesAreSettled(t *testing.T) {
	tier.Slow(t, "starts a Postgres and its standby")
	t.Parallel()
	primary := durable(t, devstack.PostgresOptions{Dir: ownDir(t)})
	require.NoError(t, primary.CreateDatabase(t.Context(), "followed"))
	_, err := migrate.Up(t.Context(), fixture.Open(t, primary.URL("followed")))
	require.NoError(t, err)
	following, err := production.Following(primary, devstack.PostgresOptions{Dir: ownDir(t)})
	require.NoError(t, err)
	standby := durable(t, following)
	_, err = page.ReadChanges(t.Context(), fixture.Open(t, standby.URL("followed")))
	require.True(t, postgres.Unavailable(err), "%v", err)
}
