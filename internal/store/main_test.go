package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/store"
	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// open opens a store on a database.
func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(store.Options{URL: url})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// connect gives a plain connection, for what the store doesn't offer.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}
