package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

func serving(t *testing.T, url string) *postgres.DB {
	t.Helper()
	s, err := postgres.Open(postgres.Options{URL: url, MaxConns: 2, Serving: true})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestARequestThatFindsNoConnectionIsTurnedAwayThoughItHasTime(t *testing.T) {
	t.Parallel()
	s := serving(t, testkit.SharedDatabase(t))
	ctx := fixture.AllRows(t, s)
	err := s.InTx(ctx, func(*db.Tx) error {
		return s.InTx(ctx, func(*db.Tx) error {
			_, err := s.Client().Organization.Query().Count(ctx)
			return err
		})
	})
	require.True(t, postgres.Unavailable(err), "%v", err)
	_, err = s.Client().Organization.Query().Count(ctx)
	require.NoError(t, err)
}

func TestAServingProcessSetsDatabaseTimeoutsAndACommandSetsNone(t *testing.T) {
	t.Parallel()
	url := testkit.SharedDatabase(t)
	for name, limit := range map[string]string{
		"lock_timeout": "10s", "statement_timeout": "1min", "idle_in_transaction_session_timeout": "1min",
	} {
		require.Equal(t, limit, setting(t, serving(t, url), name))
		require.Equal(t, "0", setting(t, fixture.Open(t, url), name), "commands take the time that they take")
	}
	require.Equal(t, "7s", setting(t, serving(t, url+"&lock_timeout=7s"), "lock_timeout"), "the operator's own")
}

// setting reads a setting of the store's connections.
func setting(t *testing.T, s *postgres.DB, name string) (value string) {
	t.Helper()
	ctx := fixture.AllRows(t, s)
	require.NoError(t, s.InTx(ctx, func(tx *db.Tx) error {
		rows, err := tx.QueryContext(ctx, "SHOW "+name)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		require.True(t, rows.Next())
		return rows.Scan(&value)
	}))
	return value
}

func TestADatabaseThatIsAwayIsUnavailableAndOtherFaultsAreNot(t *testing.T) {
	t.Parallel()
	away := serving(t, "postgres://127.0.0.1:1/none?sslmode=disable")
	require.True(t, postgres.Unavailable(away.Ping(t.Context())))
	s := serving(t, testkit.SharedDatabase(t))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, postgres.Unavailable(s.Ping(ended)), "the caller left")
	_, err := s.Client().Organization.Query().Count(t.Context())
	require.False(t, postgres.Unavailable(err), "a fault of ours")
	require.False(t, postgres.Unavailable(errors.New("anything else")))
}

func TestAFullDiskIsUnavailableBecauseNothingWasChanged(t *testing.T) {
	t.Parallel()
	s := serving(t, testkit.SharedDatabase(t))
	ctx := fixture.AllRows(t, s)
	err := s.InTx(ctx, func(tx *db.Tx) error {
		_, err := tx.ExecContext(ctx, "DO $$ BEGIN RAISE disk_full; END $$")
		return err
	})
	require.True(t, postgres.Unavailable(err), "%v", err)
}

func TestATransactionWhoseTimeIsOverBeforeItsCommitIsKnownToHaveChangedNothing(t *testing.T) {
	t.Parallel()
	s := serving(t, testkit.SharedDatabase(t))
	ctx, cancel := context.WithTimeout(fixture.AllRows(t, s), time.Second)
	defer cancel()
	err := s.InTx(ctx, func(*db.Tx) error {
		<-ctx.Done()
		return nil
	})
	require.True(t, postgres.Unavailable(err), "%v", err)
}
