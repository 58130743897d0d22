// Package dispatch is the client's side of Temporal: the connection, and the only place
// that starts runs, signals them, asks for them and sets schedules up. It knows workflows
// by their names and arguments.
package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"go.opentelemetry.io/otel/metric"
	"go.temporal.io/api/serviceerror"

	"earshot/internal/fairness"
	"earshot/internal/publicid"
	"earshot/internal/telemetry"
)

const (
	// A call tries to reach Temporal for startTimeout, then goes to the end of the queue, and
	// the next try comes after startPause. The queue lasts as long as the process, so its runs
	// start as soon as Temporal is back. The sweep starts the runs of a process that died.
	startTimeout = 10 * time.Second
	startPause   = time.Second
)

// Dispatcher is the domain's: it starts the runs of what is committed, and tells runs that
// are open of changes.
//
// A process ends it in this order: first whoever accepts requests stops; then Drain starts
// what waits, while the worker can still run it; then the worker stops, whose activities
// may hand more over until then; then Close. Whatever is handed over before Close is started
// or logged as left to the sweep, and nothing runs after it.
type Dispatcher struct {
	temporal *Connection
	groupMax int
	eager    bool
	lags     func(publicid.Webhook) bool
	log      *slog.Logger
	// sizes are those of the groups that were started.
	sizes metric.Int64Histogram
	// traces are nil where there are none.
	traces *telemetry.Traces
	// life is the context of all calls; Close ends it.
	life context.Context
	end  context.CancelFunc

	mu         sync.Mutex
	closed     bool
	deliveries *fairness.Queue
	// starting counts who starts groups.
	starting int
	// wakeAt is when the queue is looked at next because a group will be due;
	// zero where none waits.
	wakeAt time.Time
	// requests wait for their turn; sending says that somebody sends them.
	requests []request
	sending  bool
	// idle tells of each end of starting and sending.
	idle *sync.Cond
}

// New makes a dispatcher whose groups have at most groupMax deliveries.
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

// Measure has a process's metrics show the groups that are started, and what waits for
// its start. It is called before anything is started.
func (d *Dispatcher) Measure(m telemetry.Meter) {
	d.sizes = m.Sizes("earshot_group_size", "Deliveries of a workflow that was started.", []float64{1, 2, 5, 10, 20, 40, 60})
	m.Gauge("earshot_waiting_starts", "Deliveries that wait in this process for the start of their workflow.", func(set telemetry.Set) {
		d.mu.Lock()
		defer d.mu.Unlock()
		set(float64(d.deliveries.Size()))
	})
}

// Trace has runs go on with the traces of the requests that caused them. It is called
// before anything is started.
func (d *Dispatcher) Trace(t *telemetry.Traces) { d.traces = t }

// ThroughQueues makes every start go through its queue. Workers with versions need
// it: an eager start runs in this process, whatever the current version is. It is
// called before anything is started.
func (d *Dispatcher) ThroughQueues() { d.eager = false }

// GatherWhere puts deliveries to webhooks that lag into streams of their own, which form
// larger groups. Only a process that makes attempts knows of any. It is called before
// anything is started.
func (d *Dispatcher) GatherWhere(lags func(publicid.Webhook) bool) { d.lags = lags }

// Drain waits until nothing that was handed over waits or is on its way, or for the
// context. More may be handed over meanwhile and afterwards.
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

// busy says that something is being started or sent. Its caller holds the lock.
func (d *Dispatcher) busy() bool { return d.starting > 0 || d.sending }

// Close drains, and then leaves to the sweep what still waits and what is handed over from
// then on. Calls that are under way are cut off, and it waits for their ends. A second call does
// nothing.
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

// refuses reports whether the dispatcher is closed, and logs what it leaves to the sweep
// then. Its caller holds the lock.
func (d *Dispatcher) refuses(what string, n int) bool {
	if d.closed && n > 0 {
		d.log.Warn("this process stops; the sweep will start what waits", what, n)
	}
	return d.closed
}

// pause ends early when the dispatcher does.
func (d *Dispatcher) pause(t time.Duration) {
	select {
	case <-d.life.Done():
	case <-time.After(t):
	}
}

// unreachable tells a Temporal that is away or too busy, or a call that was cut off, from a
// Temporal that says no.
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
