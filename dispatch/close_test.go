package dispatch_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"earshot/dispatch"
	"earshot/internal/change"
	"earshot/internal/publicid"
)

// stalled is a dispatcher whose Temporal takes connections and never answers, and what it logs.
func stalled(t *testing.T) (*dispatch.Dispatcher, *bytes.Buffer) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	return dispatch.New(dispatch.NewConnection(client.Options{HostPort: listener.Addr().String()}), 1, log), &logged
}

func pendingDeliveries(n int) []change.PendingDelivery {
	all := make([]change.PendingDelivery, n)
	for i := range all {
		all[i] = change.PendingDelivery{ID: publicid.NewDelivery(), EventType: "post.created"}
	}
	return all
}

// requireIdle wants a dispatcher that starts and sends nothing, and has nothing waiting: only then
// is there nothing to drain. It sends until no request is left.
func requireIdle(t *testing.T, d *dispatch.Dispatcher) {
	t.Helper()
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	d.Drain(soon)
	require.NoError(t, soon.Err())
}

// TestNothingRunsAfterAClose reads the log without a lock: the race detector would find
// whoever still writes.
func TestNothingRunsAfterAClose(t *testing.T) {
	t.Parallel()
	d, logged := stalled(t)
	d.Deliver(pendingDeliveries(5))
	d.RunRecoveries([]change.RunningRecovery{{Recovery: publicid.NewRecovery()}, {Recovery: publicid.NewRecovery()}})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	d.Close(over)
	requireIdle(t, d)
	require.Contains(t, logged.String(), "the sweep will start")
}

func TestWhatIsHandedOverAfterACloseIsLoggedAndLeftToTheSweep(t *testing.T) {
	t.Parallel()
	d, logged := stalled(t)
	d.Close(t.Context())
	require.Empty(t, logged.String())
	d.Deliver(pendingDeliveries(3))
	d.EndFailureStreaks([]publicid.Webhook{publicid.NewWebhook()})
	requireIdle(t, d)
	require.Contains(t, logged.String(), "deliveries=3")
	require.Contains(t, logged.String(), "others=1")
	d.Close(t.Context())
}
