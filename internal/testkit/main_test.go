package testkit_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestEveryTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for range 2 {
		c, err := pgx.Connect(t.Context(), testkit.Database(t))
		require.NoError(t, err)
		_, err = c.Exec(t.Context(), "CREATE TABLE only_here ()")
		require.NoError(t, err)
		require.NoError(t, c.Close(t.Context()))
	}
}
