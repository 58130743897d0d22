package testkit

import (
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"earshot/internal/devstack"
	"earshot/worker"
)

// retention is the shortest that Temporal takes; the server of the tests is
// thrown away long before.
const retention = 24 * time.Hour

// Namespace makes a Temporal namespace for one test, set up as the service
// needs it, and returns the options of a client for it.
func Namespace(t testing.TB) client.Options {
	t.Helper()
	return namespace(t, os.Getenv(temporalVariable))
}

// NamespaceWith is a Namespace on a server of its own, which has the settings of
// Temporal's dynamic configuration, each as name=value.
func NamespaceWith(t testing.TB, settings ...string) client.Options {
	t.Helper()
	report := devstack.Report(t.Logf)
	binary, err := devstack.TemporalBinary(t.Context(), Root(), report)
	require.NoError(t, err)
	var args []string
	for _, setting := range settings {
		args = append(args, "--dynamic-config-value", setting)
	}
	server, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{
		Dir: t.TempDir(), Binary: binary, UIPort: devstack.Headless, ExtraArgs: args, Report: report,
	})
	require.NoError(t, err)
	t.Cleanup(func() { withTimeout(server.Stop) })
	return namespace(t, server.Address())
}

func namespace(t testing.TB, address string) client.Options {
	t.Helper()
	o := client.Options{
		HostPort:  address,
		Namespace: "test-" + hex.EncodeToString(uuidBytes()),
		// Recorded histories hold it, and mustn't hold a machine's name.
		Identity: "earshot-test",
		Logger:   log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	}
	c, err := client.DialContext(t.Context(), o)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: o.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	require.NoError(t, err)
	attributes, err := worker.ReadAttributes(filepath.Join(Root(), "temporal-dev.yaml"))
	require.NoError(t, err)
	// A namespace that was registered a moment ago may not be known everywhere.
	require.EventuallyWithT(t, func(c2 *assert.CollectT) {
		_, err := worker.SetUpNamespace(t.Context(), c, o.Namespace, attributes)
		require.NoError(c2, err)
	}, Wait, 50*time.Millisecond)
	return o
}

// Temporal is a client in a new Namespace.
func Temporal(t testing.TB) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), Namespace(t))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}
