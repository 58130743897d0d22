package production

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"earshot/internal/devstack"
	"earshot/internal/testkit/tier"
)

// startServerIn starts a temporal-server that ends with the test.
func startServerIn(t *testing.T, o TemporalOptions) *Temporal {
	t.Helper()
	o.Report = t.Logf
	s, err := StartTemporal(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

func dial(t *testing.T, s *Temporal) client.Client {
	t.Helper()
	c, err := devstack.TemporalClient(s.Address(), nil)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func greet(_ workflow.Context, name string) (string, error) { return "hello " + name, nil }

func TestATemporalServerKeepsItsRunsInPostgresOverAKill(t *testing.T) {
	tier.Slow(t, "builds and starts temporal-server")
	t.Parallel()
	programs, err := BuildPrograms(t.Context(), repository, t.Logf)
	require.NoError(t, err)
	p := startPostgresIn(t, devstack.PostgresOptions{Dir: reachableDir(t), Durable: true})
	o := TemporalOptions{Dir: t.TempDir(), Programs: programs, Database: p.URL("postgres")}
	s := startServerIn(t, o)
	address := s.Address()
	_, err = dial(t, s).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "greeting", TaskQueue: "greetings"}, greet, "Ada")
	require.NoError(t, err)
	s.Kill()

	s = startServerIn(t, o)
	require.Equal(t, address, s.Address(), "clients find it where it was")
	c := dial(t, s)
	w := worker.New(c, "greetings", worker.Options{})
	w.RegisterWorkflow(greet)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	var greeting string
	require.NoError(t, c.GetWorkflow(t.Context(), "greeting", "").Get(t.Context(), &greeting))
	require.Equal(t, "hello Ada", greeting)
}

func TestATemporalServerWithoutItsPostgresSaysSo(t *testing.T) {
	t.Parallel()
	port, err := devstack.FreePort()
	require.NoError(t, err)
	_, err = StartTemporal(t.Context(), TemporalOptions{
		Dir: t.TempDir(), Database: "postgres://postgres:hidden@127.0.0.1:" + strconv.Itoa(port) + "/postgres?sslmode=disable",
	})
	require.ErrorContains(t, err, "connect to Temporal's Postgres")
	require.NotContains(t, err.Error(), "hidden")
}

func TestComposeAndTheHarnessUseTheSameTemporalConfiguration(t *testing.T) {
	t.Parallel()
	composes, err := os.ReadFile(filepath.Join(repository, "deploy", "temporal", "dynamicconfig.yaml"))
	require.NoError(t, err)
	require.Equal(t, string(serverDynamicConfig), string(composes))
}
