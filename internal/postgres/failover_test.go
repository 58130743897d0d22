package postgres_test

import (
	"context"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// at replaces the hosts in a database's URL.
func at(t *testing.T, database, hosts string) string {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	u.Host = hosts
	return u.String()
}

func hostOf(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	return u.Host
}

// listen opens a listener. The kernel accepts connections, but no data is read until the test calls
// Accept.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// write inserts an organization.
func write(ctx context.Context, s *postgres.DB) error {
	ctx = s.Across("a test").Context(ctx)
	return s.InTx(ctx, func(tx *db.Tx) error {
		return tx.Organization.Create().SetName("Acme").Exec(ctx)
	})
}

func TestAHostThatIsSilentLeavesARequestTimeForTheNext(t *testing.T) {
	t.Parallel()
	database := testkit.SharedDatabase(t)
	silent := listen(t).Addr().String()
	require.NoError(t, write(t.Context(), serving(t, at(t, database, silent+","+hostOf(t, database)))))
	require.True(t, postgres.Unavailable(write(t.Context(), serving(t, at(t, database, silent)))), "it alone is waited for, in vain")
}

func TestOfSeveralHostsOnlyOneThatTakesWritesIsUsed(t *testing.T) {
	t.Parallel()
	database := testkit.SharedDatabase(t)
	_, port, err := net.SplitHostPort(hostOf(t, database))
	require.NoError(t, err)
	several := at(t, database, "127.0.0.1:"+port+",localhost:"+port)
	require.NoError(t, write(t.Context(), serving(t, several)))
	demoted := serving(t, several+"&default_transaction_read_only=on").Ping(t.Context())
	require.True(t, postgres.Unavailable(demoted), "%v", demoted)
	require.ErrorContains(t, demoted, "read only connection")
}

func TestAConnectionToAServerThatTakesNoWritesIsClosed(t *testing.T) {
	t.Parallel()
	database := testkit.Database(t)
	name := fixture.Connect(t, database).Config().Database
	set := func(readOnly string) {
		writable := fixture.Connect(t, database+"&default_transaction_read_only=off")
		_, err := writable.Exec(t.Context(), "ALTER DATABASE "+name+" SET default_transaction_read_only = "+readOnly)
		require.NoError(t, err)
	}
	set("on")
	s, err := postgres.Open(postgres.Options{URL: database, MaxConns: 1, Serving: true})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.NoError(t, s.Ping(t.Context()), "its only connection is open")
	set("off")
	refused := write(t.Context(), s)
	require.True(t, postgres.Unavailable(refused), "%v", refused)
	require.NoError(t, write(t.Context(), s), "by a new connection")
}

func TestAConnectionThatEndsInTheMiddleOfATransactionHasChangedNothing(t *testing.T) {
	t.Parallel()
	l, database := testkit.NewLink(t, testkit.Database(t))
	s := serving(t, database)
	ctx := fixture.AllRows(t, s)
	lost := s.InTx(ctx, func(tx *db.Tx) error {
		l.Cut()
		return tx.Organization.Create().SetName("Acme").Exec(ctx)
	})
	require.True(t, postgres.Unavailable(lost), "%v", lost)
	require.False(t, postgres.Unknown(lost))
	n, err := s.Client().Organization.Query().Count(ctx)
	require.NoError(t, err, "by a new connection")
	require.Zero(t, n)
}

func TestACommitWithALostAnswerHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	l, database := testkit.NewLink(t, testkit.SharedDatabase(t))
	s := serving(t, database)
	ctx := fixture.AllRows(t, s)
	unknown := s.InTx(ctx, func(tx *db.Tx) error {
		err := tx.Organization.Create().SetName("Acme").Exec(ctx)
		l.Cut()
		return err
	})
	require.Error(t, unknown)
	require.False(t, postgres.Unavailable(unknown), "%v", unknown)
	require.True(t, postgres.Unknown(unknown))
}
