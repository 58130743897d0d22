package testkit_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

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

// The server takes long to end many runs.
func TestANamespaceThatIsFullOfRunsIsNotLeasedAgain(t *testing.T) {
	t.Parallel()
	o, giveBack, err := testkit.LeaseNamespace(t.Context())
	require.NoError(t, err)
	c, err := client.DialContext(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for range 101 {
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "nobody"}, "waits")
		require.NoError(t, err)
	}
	open := func() int64 {
		found, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running'"})
		require.NoError(t, err)
		return found.GetCount()
	}
	require.Eventually(t, func() bool { return open() == 101 }, testkit.Wait, testkit.Tick)
	giveBack()
	postgres, err := pgx.Connect(t.Context(), testkit.Database(t))
	require.NoError(t, err)
	defer func() { _ = postgres.Close(context.Background()) }()
	leased := func() (held bool) {
		const sql = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND 'test-' || objid = $1)"
		require.NoError(t, postgres.QueryRow(t.Context(), sql, o.Namespace).Scan(&held))
		return held
	}
	require.Eventually(t, func() bool { return !leased() }, testkit.Wait, testkit.Tick)

	next, giveBack, err := testkit.LeaseNamespace(t.Context())
	require.NoError(t, err)
	giveBack()
	require.NotEqual(t, o.Namespace, next.Namespace)
	require.EqualValues(t, 101, open())
}
