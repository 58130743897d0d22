package devstack

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/tier"
)

func TestAStandbyHasAllCommittedDataAndReplacesAKilledPrimary(t *testing.T) {
	tier.Needs(t, "postgres")
	t.Parallel()
	dir := reachableDir(t)
	primary := startPostgresIn(t, PostgresOptions{Dir: dir, Durable: true})
	standby := startPostgresIn(t, PostgresOptions{Dir: reachableDir(t), Durable: true, Follow: primary})
	require.NoError(t, primary.Synchronize(t.Context()))
	execute(t, primary, noteDown)
	var refused *pgconn.PgError
	_, err := connect(t, standby.URL("postgres")).Exec(t.Context(), "CREATE TABLE others ()")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "25006", refused.Code, "read_only_sql_transaction")

	primary.Kill()
	require.NoError(t, standby.Promote(t.Context()))
	require.Equal(t, "kept", readNote(t, standby.URL("postgres")))
	execute(t, standby, "INSERT INTO notes VALUES ('and written to')")

	// A former primary that is started by mistake must not accept writes.
	again := startPostgresIn(t, PostgresOptions{Dir: dir, Durable: true})
	ctx, cancel := context.WithCancel(t.Context())
	waiting := connect(t, again.URL("postgres"))
	committed := make(chan error, 1)
	go func() {
		_, err := waiting.Exec(ctx, "INSERT INTO notes VALUES ('nobody has this')")
		committed <- err
	}()
	watch := connect(t, again.URL("postgres"))
	require.Eventually(t, func() bool {
		var waits bool
		const question = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')"
		return watch.QueryRow(t.Context(), question).Scan(&waits) == nil && waits
	}, postgresReady, 10*time.Millisecond, "the commit waits for a standby")
	cancel()
	require.ErrorIs(t, <-committed, context.Canceled)
}
