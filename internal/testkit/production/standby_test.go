package production

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"earshot/internal/devstack"
	"earshot/internal/testkit/tier"
)

const (
	repository = "../../.."
	noteDown   = "CREATE TABLE notes (text text); INSERT INTO notes VALUES ('kept')"
)

// reachableDir returns a temporary directory that the user postgres can enter. The parent of
// t.TempDir is closed to other users.
func reachableDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	return dir
}

// startPostgresIn starts a cluster that ends with the test.
func startPostgresIn(t *testing.T, o devstack.PostgresOptions) *devstack.Postgres {
	t.Helper()
	o.Report = t.Logf
	p, err := devstack.StartPostgres(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(context.Background())) })
	return p
}

func connect(t *testing.T, p *devstack.Postgres) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.URL("postgres"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, p *devstack.Postgres, statement string) {
	t.Helper()
	_, err := connect(t, p).Exec(t.Context(), statement)
	require.NoError(t, err)
}

func TestAStandbyHasAllCommittedDataAndReplacesAKilledPrimary(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	dir := reachableDir(t)
	primary := startPostgresIn(t, devstack.PostgresOptions{Dir: dir, Durable: true})
	following, err := Following(primary, devstack.PostgresOptions{Dir: reachableDir(t), Durable: true})
	require.NoError(t, err)
	standby := startPostgresIn(t, following)
	require.NoError(t, Synchronize(t.Context(), primary))
	execute(t, primary, noteDown)
	var refused *pgconn.PgError
	_, err = connect(t, standby).Exec(t.Context(), "CREATE TABLE others ()")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "25006", refused.Code, "read_only_sql_transaction")

	primary.Kill()
	require.NoError(t, Promote(t.Context(), standby))
	var note string
	require.NoError(t, connect(t, standby).QueryRow(t.Context(), "SELECT text FROM notes").Scan(&note))
	require.Equal(t, "kept", note)
	execute(t, standby, "INSERT INTO notes VALUES ('and written to')")

	// A former primary that is started by mistake must not accept writes.
	again := startPostgresIn(t, devstack.PostgresOptions{Dir: dir, Durable: true})
	ctx, cancel := context.WithCancel(t.Context())
	waiting := connect(t, again)
	committed := make(chan error, 1)
	go func() {
		_, err := waiting.Exec(ctx, "INSERT INTO notes VALUES ('nobody has this')")
		committed <- err
	}()
	watch := connect(t, again)
	require.Eventually(t, func() bool {
		var waits bool
		const question = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')"
		return watch.QueryRow(t.Context(), question).Scan(&waits) == nil && waits
	}, 30*time.Second, 10*time.Millisecond, "the commit waits for a standby")
	cancel()
	require.ErrorIs(t, <-committed, context.Canceled)
}
