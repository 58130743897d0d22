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
	"earshot/internal/jobs"
	"earshot/internal/publicid"
)

// stalled returns a dispatcher and its log. Its Temporal accepts connections and never answers.
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

// requireIdle requires that the dispatcher has nothing under way and nothing waiting. Drain returns
// before its timeout only in that case.
func requireIdle(t *testing.T, d *dispatch.Dispatcher) {
	t.Helper()
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	d.Drain(soon)
	require.NoError(t, soon.Err())
}

// TestNothingRunsAfterAClose reads the log without a lock, so the race detector reports a goroutine
// that still writes to it.
func TestNothingRunsAfterAClose(t *testing.T) {
	t.Parallel()
	d, logged := stalled(t)
	d.Deliver(pendingDeliveries(5))
	d.Queue([]jobs.Request{{ID: "one"}, {ID: "another"}})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	d.Close(over)
	requireIdle(t, d)
	require.Contains(t, logged.String(), "the sweep will start")
}

func TestWorkAfterACloseIsLoggedAndLeftToTheSweep(t *testing.T) {
	t.Parallel()
	d, logged := stalled(t)
	d.Close(t.Context())
	require.Empty(t, logged.String())
	d.Deliver(pendingDeliveries(3))
	d.Queue([]jobs.Request{{ID: "one"}})
	requireIdle(t, d)
	require.Contains(t, logged.String(), "deliveries=3")
	require.Contains(t, logged.String(), "others=1")
	d.Close(t.Context())
}
