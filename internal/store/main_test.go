package store_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/store"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
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
	testkit.Main(m)
}

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
