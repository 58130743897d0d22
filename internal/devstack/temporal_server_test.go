package devstack

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/internal/testkit/tier"
)

// startServerIn starts a temporal-server that ends with the test.
func startServerIn(t *testing.T, o TemporalServerOptions) *Temporal {
	t.Helper()
	o.Report = reportTo(t)
	s, err := StartTemporalServer(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

func TestATemporalServerKeepsItsRunsInPostgresOverAKill(t *testing.T) {
	tier.Slow(t, "builds and starts temporal-server")
	t.Parallel()
	programs, err := TemporalServerPrograms(t.Context(), repository(), reportTo(t))
	require.NoError(t, err)
	p := startPostgresIn(t, PostgresOptions{Dir: reachableDir(t), Durable: true})
	o := TemporalServerOptions{
		Dir: t.TempDir(), Programs: programs, Database: p.URL("postgres"), Namespaces: []string{"default", "other"},
	}
	s := startServerIn(t, o)
	address := s.Address()
	for _, namespace := range o.Namespaces {
		_, err := dialTemporal(t, s, namespace).ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: "greeting", TaskQueue: testQueue}, greet, namespace)
		require.NoError(t, err)
	}
	s.Kill()

	s = startServerIn(t, o)
	require.Equal(t, address, s.Address(), "clients find it where it was")
	for _, namespace := range o.Namespaces {
		c := dialTemporal(t, s, namespace)
		work(t, c)
		requireGreeting(t, c.GetWorkflow(t.Context(), "greeting", ""), namespace)
	}
}

func TestATemporalServerWithoutItsPostgresSaysSo(t *testing.T) {
	t.Parallel()
	port, _, err := FreePort(0)
	require.NoError(t, err)
	_, err = StartTemporalServer(t.Context(), TemporalServerOptions{
		Dir: t.TempDir(), Database: "postgres://postgres:hidden@" + hostPort(port) + "/postgres?sslmode=disable",
	})
	require.ErrorContains(t, err, "connect to Temporal's Postgres")
	require.NotContains(t, err.Error(), "hidden")
}

func TestComposeAndTheDevelopmentStackUseTheSameTemporalConfiguration(t *testing.T) {
	t.Parallel()
	composes, err := os.ReadFile(filepath.Join(repository(), "deploy", "temporal", "dynamicconfig.yaml"))
	require.NoError(t, err)
	require.Equal(t, string(serverDynamicConfig), string(composes))
}
