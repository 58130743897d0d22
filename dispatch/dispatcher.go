// Package dispatch is the client side of Temporal. It holds the connection, and it alone starts,
// signals and queries runs and sets up schedules. It refers to workflows by name and arguments.
package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/metric"
	"go.temporal.io/api/serviceerror"

	"earshot/internal/delivery/fairness"
	"earshot/internal/jobs"
	"earshot/internal/publicid"
	"earshot/internal/telemetry"
)

const (
	// A call tries to reach Temporal for startTimeout. A failed call goes to the end of the queue,
	// and the next call begins after startPause. The queue lasts as long as the process, so its
	// runs start as soon as Temporal is back. The sweep starts the runs of a process that died.
	startTimeout = 10 * time.Second
	startPause   = time.Second
)

// Dispatcher starts the runs of committed changes and signals open runs about changes.
//
// A process shuts down in this order:
//  1. The servers stop accepting requests.
//  2. Drain starts the waiting runs while the worker can still execute them.
//  3. The worker stops. Until then its activities may hand over more runs.
//  4. Close ends the dispatcher.
//
// Runs that are handed over before Close are started, or logged as left to the sweep. Nothing runs
// after Close.
type Dispatcher struct {
	temporal *Connection
	groupMax int
	eager    bool
	lags     func(publicid.Webhook) bool
	log      *slog.Logger
	// sizes records the sizes of started groups.
	sizes metric.Int64Histogram
	// traces is nil without tracing.
	traces *telemetry.Traces
	// life is the context of all calls; Close ends it.
	life context.Context
	end  context.CancelFunc

	mu         sync.Mutex
	closed     bool
	deliveries *fairness.Queue
	// starting counts the goroutines that start groups.
	starting int
	// wakeAt is the time of the next timer for a group that becomes due, zero without one.
	wakeAt time.Time
	// requests wait for their turn. sending is true while a goroutine sends them.
	requests []jobs.Request
	sending  bool
	// idle is signalled whenever a goroutine ends starting or sending.
	idle *sync.Cond
}

// New returns a dispatcher whose groups have at most groupMax deliveries.
func New(c *Connection, groupMax int, log *slog.Logger) *Dispatcher {
	d := &Dispatcher{
		temporal: c, groupMax: groupMax, eager: true, lags: func(publicid.Webhook) bool { return false }, log: log,
		deliveries: fairness.NewQueue(),
	}
	d.Measure(telemetry.Meter{})
	d.life, d.end = context.WithCancel(context.Background())
	d.idle = sync.NewCond(&d.mu)
	return d
}

// Measure adds the sizes of started groups and the number of waiting deliveries to the process's
// metrics. Call it before the first start.
func (d *Dispatcher) Measure(m telemetry.Meter) {
	d.sizes = m.Sizes("earshot_group_size", "Deliveries of a workflow that was started.", []float64{1, 2, 5, 10, 20, 40, 60})
	m.Gauge("earshot_waiting_starts", "Deliveries that wait in this process for the start of their workflow.", func(set telemetry.Set) {
		d.mu.Lock()
		defer d.mu.Unlock()
		set(float64(d.deliveries.Size()))
	})
}

// Trace makes runs continue the traces of the requests that caused them. Call it before the first
// start.
func (d *Dispatcher) Trace(t *telemetry.Traces) { d.traces = t }

// ThroughQueues makes every start go through its task queue. Versioned workers require it, because
// an eager start runs in this process even if its version is not current. Call it before the first
// start.
func (d *Dispatcher) ThroughQueues() { d.eager = false }

// GatherWhere puts deliveries to lagging webhooks into separate streams, which form larger groups.
// Only a process that makes attempts can detect lagging webhooks. Call it before the first start.
func (d *Dispatcher) GatherWhere(lags func(publicid.Webhook) bool) { d.lags = lags }

// Drain waits until every delivery and request has been started or sent, or until the context ends.
// Callers may hand over more during and after Drain.
func (d *Dispatcher) Drain(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.idle.Broadcast()
	})
	defer stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for (d.busy() || d.deliveries.Size() > 0) && ctx.Err() == nil {
		d.idle.Wait()
	}
}

// busy reports whether a goroutine starts or sends something. The caller holds the lock.
func (d *Dispatcher) busy() bool { return d.starting > 0 || d.sending }

// Close drains, and then leaves everything that still waits or arrives later to the sweep. It
// cancels running calls and waits for them to end. A second call does nothing.
func (d *Dispatcher) Close(ctx context.Context) {
	d.Drain(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.refuses("deliveries", d.deliveries.Size())
	d.refuses("others", len(d.requests))
	d.deliveries, d.requests = fairness.NewQueue(), nil
	d.end()
	for d.busy() {
		d.idle.Wait()
	}
}

// refuses reports whether the dispatcher is closed. If so, it logs the number that it leaves to the
// sweep. The caller holds the lock.
func (d *Dispatcher) refuses(what string, n int) bool {
	if d.closed && n > 0 {
		d.log.Warn("this process stops; the sweep will start what waits", what, n)
	}
	return d.closed
}

// pause waits, and ends early when the dispatcher closes.
func (d *Dispatcher) pause(t time.Duration) {
	select {
	case <-d.life.Done():
	case <-time.After(t):
	}
}

// unreachable reports whether a call failed because Temporal is down or overloaded, or because the
// call was canceled. Other errors are refusals by Temporal.
func unreachable(err error) bool {
	var (
		away    *serviceerror.Unavailable
		late    *serviceerror.DeadlineExceeded
		busy    *serviceerror.ResourceExhausted
		stopped *serviceerror.Canceled
	)
	return errors.As(err, &away) || errors.As(err, &late) || errors.As(err, &busy) || errors.As(err, &stopped) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
