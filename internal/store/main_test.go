package store_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"earshot/internal/store"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/worker"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(filesVariable); dir != "" {
		if err := migrateOnly(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	tier.Properties(20, 30) // 20 lives of a delivery take two seconds
	apptest.Main(m, apptest.WithWorker(worker.Module))
}

// open opens a store on the given database.
func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(store.Options{URL: url})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// connect opens a plain connection, for statements that the store doesn't have.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

// connections records the connection that a store uses for its statements.
type connections struct{ of atomic.Pointer[pgconn.PgConn] }

// last is the connection of the most recent statement.
func (c *connections) last() *pgconn.PgConn { return c.of.Load() }

func (c *connections) TraceQueryStart(ctx context.Context, on *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.of.Store(on.PgConn())
	return ctx
}

func (*connections) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
