package dispatch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/fx"

	"earshot/dispatch"
	"earshot/internal/change"
	"earshot/internal/config"
	"earshot/internal/publicid"
	"earshot/internal/telemetry"
	"earshot/internal/testkit"
)

// TestADeliveryHandedOverWhileTheWorkerStopsIsStarted uses a hook in place of the worker, between Drain
// and Close. Until then, ending activities may hand over deliveries.
func TestADeliveryHandedOverWhileTheWorkerStopsIsStarted(t *testing.T) {
	t.Parallel()
	temporal := testkit.Namespace(t)
	last := change.PendingDelivery{
		ID: publicid.NewDelivery(), Organization: publicid.NewOrganization(), EventType: "post.created",
	}
	app := fx.New(fx.NopLogger, fx.Supply(config.Config{DeliveryGroupMax: 60, DrainTimeout: testkit.Wait}, temporal),
		fx.Supply(testkit.Log(t)), telemetry.Module, dispatch.Module,
		fx.Invoke(func(lc fx.Lifecycle, d change.Dispatcher) {
			lc.Append(fx.StopHook(func() { d.Deliver([]change.PendingDelivery{last}) }))
		}),
		dispatch.Drain,
	)
	require.NoError(t, app.Start(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Wait)
	defer cancel()
	require.NoError(t, app.Stop(ctx))
	c, err := client.DialContext(ctx, temporal)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.DescribeWorkflowExecution(ctx, last.ID.String(), "")
	require.NoError(t, err)
}
