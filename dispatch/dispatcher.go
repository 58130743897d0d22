package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-faster/errors"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"earshot/internal/failpoint"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
	"earshot/workflows"
)

const (
	// Starts under way at once. While all are, further deliveries gather and
	// the next start takes up to a group of them: an idle service starts one
	// workflow per delivery at once, a busy one forms groups by itself.
	startsAtOnce = 2
	// How long a start tries to reach Temporal before it steps back behind the
	// others, and the pause before the next try. Deliveries keep waiting here
	// for as long as this process lives, so that they go out as soon as Temporal
	// is back; those of a process that died are the sweep's.
	startTimeout = 10 * time.Second
	startPause   = time.Second
	// Deliveries that may wait for a start; beyond, the sweep finds them. 100,000
	// of them take some 10 MB.
	maxWaiting = 100_000
	// Above an attempt's 10 s, so that a first round fits into one workflow
	// task even when a receiver uses its whole time, and above the lease of one,
	// which ends after 12 s: what a kill cut off is made again when both are over,
	// so within 5 s of the attempt's own time, with 2 s to spare for a backlog.
	workflowTaskTimeout = 13 * time.Second
)

// Dispatcher is the domain's Dispatcher: it starts the workflows of deliveries
// whose rows are committed. It is the only place that does.
type Dispatcher struct {
	temporal *Connection
	groupMax int
	eager    bool
	lags     func(publicid.Webhook) bool
	log      *slog.Logger

	mu      sync.Mutex
	waiting *queue
	// errands wait for their turn; one worker at a time takes them.
	errands []errand
	sending bool
	running int
	// alarm is when the queue is looked at next because something that waits is due then;
	// zero where nothing does.
	alarm time.Time
	idle  *sync.Cond
	// quit is closed when nobody waits for the queue any more.
	quit chan struct{}
}

// New makes a dispatcher whose groups have at most groupMax deliveries.
func New(c *Connection, groupMax int, log *slog.Logger) *Dispatcher {
	s := &Dispatcher{
		temporal: c, groupMax: groupMax, eager: true, lags: func(publicid.Webhook) bool { return false }, log: log,
		waiting: newQueue(), quit: make(chan struct{}),
	}
	s.idle = sync.NewCond(&s.mu)
	return s
}

// ThroughQueues makes every start go through its queue. Workers with versions need
// it: an eager start runs in this process, whatever the current version is. It is
// called before anything is started.
func (s *Dispatcher) ThroughQueues() { s.eager = false }

// GatherWhere has the deliveries to webhooks that lag gather for longer. Only a process
// that makes attempts knows of any. It is called before anything is started.
func (s *Dispatcher) GatherWhere(lags func(publicid.Webhook) bool) { s.lags = lags }

// Dispatch queues deliveries for their start and returns at once.
func (s *Dispatcher) Dispatch(deliveries []feedback.Dispatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, refused := time.Now(), 0
	for _, d := range deliveries {
		if !s.waiting.add(d, s.lags(d.Webhook), now) {
			refused++
		}
	}
	if refused > 0 {
		s.log.Warn("too many deliveries wait for their start; the sweep will start these", "deliveries", refused)
	}
	s.wake()
}

// wake has the queue looked at, unless as many do so as may. Its caller holds the lock.
func (s *Dispatcher) wake() {
	if s.running < startsAtOnce && s.waiting.size > 0 {
		s.running++
		go s.work()
	}
}

// Drain waits until nothing is waiting or on its way, or for the context; then
// what still waits is left to the sweep. It is called once, after the last
// Dispatch.
func (s *Dispatcher) Drain(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.quit)
		if n, e := s.waiting.size, len(s.errands); n+e > 0 {
			s.log.Warn("the sweep will start what still waits", "deliveries", n, "others", e)
		}
		s.waiting, s.errands = newQueue(), nil
		s.idle.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for (s.running > 0 || s.sending || s.waiting.size > 0) && ctx.Err() == nil {
		s.idle.Wait()
	}
}

func (s *Dispatcher) work() {
	for {
		group := s.take()
		if group == nil {
			return
		}
		if !s.start(group) {
			s.putBack(group)
		}
	}
}

// pause ends early when nobody waits for the queue any more.
func (s *Dispatcher) pause(d time.Duration) {
	select {
	case <-s.quit:
	case <-time.After(d):
	}
}

// putBack queues a group again after a pause, unless nobody waits any more: then
// it is the sweep's.
func (s *Dispatcher) putBack(group []feedback.Dispatch) {
	s.pause(startPause)
	select {
	case <-s.quit:
	default:
		s.Dispatch(group)
	}
}

// take cuts the next group off the queue. It ends the worker when none is due.
func (s *Dispatcher) take() []feedback.Dispatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	group, wait := s.waiting.take(s.groupMax, now)
	if group == nil {
		s.running--
		s.idle.Broadcast()
	}
	if due := now.Add(wait); wait > 0 && (s.alarm.IsZero() || due.Before(s.alarm)) {
		s.alarm = due
		time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.alarm = time.Time{}
			s.wake()
		})
	}
	return group
}

// groupID is the delivery's own id for a group of one; a larger group adds how
// many more there are.
func groupID(group []feedback.Dispatch) string {
	if len(group) == 1 {
		return group[0].ID.String()
	}
	return fmt.Sprintf("%s+%d", group[0].ID, len(group)-1)
}

// start reports whether the group is off the queue's hands: its workflow runs,
// or Temporal answered that it can't.
func (s *Dispatcher) start(group []feedback.Dispatch) bool {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	refs := make([]workflows.DeliveryRef, len(group))
	for i, d := range group {
		refs[i] = workflows.DeliveryRef{ID: d.ID, Webhook: d.Webhook}
	}
	c, err := s.temporal.Client(ctx)
	if err != nil {
		s.log.Warn("Temporal is away; deliveries wait", "error", err)
		return false
	}
	failpoint.Hit(failpoint.BeforeStart)
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:        groupID(group),
		TaskQueue: workflows.MainQueue,
		// A run that is open looks after its deliveries; a closed one may be
		// started again, because the rows decide what is still to be done.
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowTaskTimeout:                      workflowTaskTimeout,
		// This process has the worker too, most of the time: then the first
		// workflow task comes back with the answer to the start.
		EnableEagerStart:      s.eager,
		TypedSearchAttributes: attributesOf(group),
		// Whoever's turn it was: a group that is shared has little of each.
		Priority:      fairTo(group[0].Organization),
		StaticSummary: summaryOf(group),
	}, workflows.DeliverWebhooksName, workflows.NewDeliverParams(refs))
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if err == nil || errors.As(err, &already) {
		failpoint.Hit(failpoint.AfterStart)
		return true
	}
	// Never told to the caller, whose change is committed: the sweep starts what
	// stays pending.
	again := unreachable(err)
	s.log.Warn("start deliveries", "deliveries", len(group), "first", group[0].ID, "error", err, "again", again)
	return !again
}

// unreachable tells a Temporal that is away or too busy from one that says no.
func unreachable(err error) bool {
	var (
		away *serviceerror.Unavailable
		late *serviceerror.DeadlineExceeded
		busy *serviceerror.ResourceExhausted
	)
	return errors.As(err, &away) || errors.As(err, &late) || errors.As(err, &busy) ||
		errors.Is(err, context.DeadlineExceeded)
}
