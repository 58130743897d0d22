package postgres_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

func TestATransactionIsCommittedWhenItsWorkIsDone(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	ctx, _ := fixture.NewOrganization(t, s)
	require.NoError(t, s.InTx(ctx, func(tx *db.Tx) error {
		return tx.Board.Create().SetName("Ideas").SetSlug("ideas").Exec(ctx)
	}))
	n, err := s.Client().Board.Query().Count(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestAnErrorTakesTheTransactionBack(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	ctx, _ := fixture.NewOrganization(t, s)
	stop := errors.New("stop")
	err := s.InTx(ctx, func(tx *db.Tx) error {
		require.NoError(t, tx.Board.Create().SetName("Ideas").SetSlug("ideas").Exec(ctx))
		return stop
	})
	require.Equal(t, stop, err, "as it was returned: callers look for problems in it")
	n, err := s.Client().Board.Query().Count(ctx)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestAQueryThatFailsInTheRoundTripOfBEGINReturnsItsError(t *testing.T) {
	t.Parallel()
	url := testkit.ImpatientDatabase(t)
	s, err := postgres.Open(postgres.Options{URL: url, MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	ctx, _ := fixture.NewOrganization(t, s)
	looks := map[string]func(tx *db.Tx) error{
		"contacts": func(tx *db.Tx) error {
			_, err := contacts.SeeContacts(ctx, tx, []string{"x"}, time.Now(), 0, false)
			return err
		},
		"posts": func(tx *db.Tx) error {
			_, err := feedback.KeepPostPlaces(ctx, tx, []feedback.PostSlug{{Board: publicid.NewBoard(), Slug: "x"}}, nil, false)
			return err
		},
	}
	for name, look := range looks {
		require.NoError(t, s.InTx(ctx, look), name) // the connection keeps the prepared statement, so the next one fails before its first row
	}
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
	_, err = c.Exec(t.Context(), "BEGIN; LOCK TABLE contacts, posts IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	for name, look := range looks {
		err := s.InTx(ctx, look)
		require.True(t, postgres.Unavailable(err), "%s: %v", name, err)
	}
}

func TestACommitOfATransactionThatHasFailedIsAnError(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	ctx, _ := fixture.NewOrganization(t, s)
	err := s.InTx(ctx, func(tx *db.Tx) error {
		_, failed := tx.ExecContext(ctx, "SELECT 1/0")
		require.Error(t, failed)
		return nil
	})
	require.ErrorIs(t, err, pgx.ErrTxCommitRollback)
	require.False(t, postgres.Unknown(err), "it is certain that nothing was changed")
}

func TestAPanicTakesTheTransactionBackAndFreesTheConnection(t *testing.T) {
	t.Parallel()
	s, err := postgres.Open(postgres.Options{URL: testkit.Database(t), MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	ctx, _ := fixture.NewOrganization(t, s)
	require.PanicsWithValue(t, "stop", func() {
		_ = s.InTx(ctx, func(tx *db.Tx) error {
			require.NoError(t, tx.Board.Create().SetName("Ideas").SetSlug("ideas").Exec(ctx))
			panic("stop")
		})
	})
	// The pool has one connection. This query would wait forever if the transaction had kept it.
	n, err := s.Client().Board.Query().Count(ctx)
	require.NoError(t, err)
	require.Zero(t, n)
}

// Two transactions lock two rows in opposite order. The database ends one of them, which runs again
// and then finds both rows unlocked.
func TestATransactionThatADeadlockEndedRunsAgain(t *testing.T) {
	t.Parallel()
	s := fixture.Open(t, testkit.Database(t)+fixture.FastDeadlocks)
	ctx, _ := fixture.NewOrganization(t, s)
	a := s.Client().Board.Create().SetName("a").SetSlug("a").SaveX(ctx).ID
	b := s.Client().Board.Create().SetName("b").SetSlug("b").SaveX(ctx).ID
	var holding, done sync.WaitGroup
	var runs atomic.Int32
	holding.Add(2)
	for _, order := range [][]publicid.Board{{a, b}, {b, a}} {
		held := sync.OnceFunc(func() { holding.Done(); holding.Wait() })
		done.Go(func() {
			assert.NoError(t, s.InTx(ctx, func(tx *db.Tx) error {
				runs.Add(1)
				for _, id := range order {
					found, err := tx.Board.Query().Where(board.ID(id)).ForUpdate().Only(ctx)
					if err != nil {
						return err
					}
					if err := tx.Board.UpdateOne(found).SetDescription(found.Description + "x").Exec(ctx); err != nil {
						return err
					}
					held()
				}
				return nil
			}))
		})
	}
	done.Wait()
	require.Greater(t, runs.Load(), int32(2), "there was no deadlock")
	for _, row := range s.Client().Board.Query().AllX(ctx) {
		require.Equal(t, "xx", row.Description, "once of each transaction")
	}
}

// The API's timestamps are in UTC, wherever the service runs.
func TestTimesAreReadInUTC(t *testing.T) {
	t.Parallel()
	o := fixture.NewOutbox(t)
	row := o.Row(o.Delivery())
	require.Equal(t, time.UTC, row.CreatedAt.Location())
	require.Equal(t, time.UTC, row.NextAttemptAt.Location())
	require.NoError(t, o.Update(row.ID).SetNextAttemptAt(fixture.Ago(time.Hour)).Exec(o.Ctx))
	var at time.Time
	require.NoError(t, o.Store.Across("a test").QueryRow(t.Context(), "SELECT next_attempt_at FROM deliveries WHERE id = $1", row.ID).Scan(&at))
	require.Equal(t, time.UTC, at.Location())
}

func TestATimeIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	ctx, _ := fixture.NewOrganization(t, s)
	made, err := s.Client().Board.Create().SetName("Ideas").SetSlug("ideas").Save(ctx)
	require.NoError(t, err)
	read, err := s.Client().Board.Get(ctx, made.ID)
	require.NoError(t, err)
	require.Equal(t, made.CreatedAt, read.CreatedAt)
	require.Equal(t, made.UpdatedAt, read.UpdatedAt)
}

func TestFreeFormJSONIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	ctx, _ := fixture.NewOrganization(t, s)
	const metadata = `{"z":9007199254740993,"a":0.10000000000000000000001,"z2":{"b":1,"a":"\u003cé"},"z":1}`
	made, err := s.Client().Contact.Create().SetMetadata([]byte(metadata)).SetSource("admin").SetConsentBasis("admin_created").Save(ctx)
	require.NoError(t, err)
	read, err := s.Client().Contact.Get(ctx, made.ID)
	require.NoError(t, err)
	require.Equal(t, metadata, string(read.Metadata))
}

func TestADatabaseThatIsAwayShowsInAPing(t *testing.T) {
	t.Parallel()
	s := fixture.Open(t, "postgres://nobody@127.0.0.1:1/nothing?sslmode=disable")
	require.ErrorContains(t, s.Ping(t.Context()), "ping the database")
	require.NoError(t, testkit.SharedStore(t).Ping(t.Context()))
}

func TestADatabaseURLThatCanNotBeReadDoesNotShowItsPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://earshot:hunter2@db.example.com:port/earshot",
		"postgres://earshot:hunter2@db.example.com/earshot?sslmode=perhaps",
		"postgres://earshot:hunter2@db.example.com/earshot?pool_max_conns=many",
		"postgres://db.example.com/earshot?password=hunter2&sslmode=perhaps",
	} {
		_, err := postgres.Open(postgres.Options{URL: url})
		require.ErrorContains(t, err, "parse the database URL")
		require.NotContains(t, err.Error(), "hunter2")
	}
}
