// Package worker runs the workflows and activities. It sets the work and the limits of each task
// queue. A worker starts even while Temporal is down, and stops without cutting off an attempt.
package worker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/dispatch"
	"earshot/workflows"
)

const (
	// tryTimeout limits one try to start. firstPause and maxPause bound the pauses between two
	// tries.
	tryTimeout = 10 * time.Second
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
)

// Options of a worker.
type Options struct {
	// Drain is how long a stop waits for attempts that are under way.
	Drain time.Duration
	// SchedulesEvery is how often the worker checks that its schedules exist; 0 is every minute.
	SchedulesEvery time.Duration
	// Version is the version of this program in a worker deployment of Temporal. The zero value
	// turns versioning off.
	Version worker.WorkerDeploymentVersion
	Log     *slog.Logger
}

// Worker runs workflows and activities in this process.
type Worker struct {
	temporal *dispatch.Connection
	does     activities.All
	options  Options

	running atomic.Bool
	started time.Time
	quit    context.CancelFunc
	done    chan struct{}
}

// New makes a worker. Nothing runs before Start.
func New(c *dispatch.Connection, does activities.All, options Options) *Worker {
	if options.SchedulesEvery == 0 {
		options.SchedulesEvery = schedulesEvery
	}
	return &Worker{temporal: c, does: does, options: options}
}

// Start returns immediately. The worker starts in the background, when Temporal answers and the
// namespace is set up. The service can accept writes in the meantime.
func (w *Worker) Start() {
	ctx, quit := context.WithCancel(context.Background())
	w.quit, w.done, w.started = quit, make(chan struct{}), time.Now()
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			w.runOnce(ctx)
		}
	}()
}

// runOnce runs the workers until ctx ends or the SDK reports a fatal error, for example because the
// namespace was deleted.
func (w *Worker) runOnce(ctx context.Context) {
	broken, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	stop := w.comeUp(ctx, giveUp)
	w.keepSchedules(broken)
	w.running.Store(false)
	if ctx.Err() == nil {
		w.options.Log.Error("worker was given up and comes up again", "error", context.Cause(broken))
	}
	stop()
}

// Stop takes no further work, and waits until the work under way has ended or the drain time is
// over.
func (w *Worker) Stop() {
	w.quit()
	<-w.done
}

// Running reports whether the worker is running.
func (w *Worker) Running() bool { return w.running.Load() }

// comeUp retries until the workers run or ctx ends. It returns a function that stops them.
func (w *Worker) comeUp(ctx context.Context, giveUp func(error)) (stop func()) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		stop, err := w.try(ctx, giveUp)
		if err == nil {
			w.running.Store(true)
			w.options.Log.Info("worker runs", "queues", []string{workflows.MainQueue, workflows.LaterQueue})
			return stop
		}
		if ctx.Err() != nil {
			return func() {}
		}
		w.options.Log.Warn("worker can't come up yet", "error", err, "next", pause)
		select {
		case <-ctx.Done():
			return func() {}
		case <-time.After(pause):
		}
	}
}

func (w *Worker) try(ctx context.Context, giveUp func(error)) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	c, err := w.temporal.Client(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkNamespace(ctx, c, w.temporal.Namespace()); err != nil {
		return nil, err
	}
	worker.SetStickyWorkflowCacheSize(cachedRuns) // applies to all workers that start afterwards
	first := w.main(c, giveUp)
	later, err := w.later(c, giveUp)
	if err != nil {
		return nil, err
	}
	if err := later.Start(); err != nil {
		return nil, errors.Wrapf(err, "start the worker of %s", workflows.LaterQueue)
	}
	if err := first.Start(); err != nil {
		later.Stop()
		return nil, errors.Wrapf(err, "start the worker of %s", workflows.MainQueue)
	}
	return func() {
		// Both workers stop at the same time, so that each has the whole drain time.
		ended := make(chan struct{})
		go func() { defer close(ended); later.Stop() }()
		first.Stop()
		<-ended
	}, nil
}

// main returns the worker of the workflows, their first rounds, the sweep and the retention.
func (w *Worker) main(c client.Client, giveUp func(error)) worker.Worker {
	m := worker.New(c, workflows.MainQueue, w.base(giveUp))
	Register(m)
	w.does.Register(m)
	return m
}

// later returns the worker of attempts after the first round.
func (w *Worker) later(c client.Client, giveUp func(error)) (worker.Worker, error) {
	o := w.base(giveUp)
	o.DisableWorkflowWorker = true
	var err error
	if o.Tuner, err = laterTuner(); err != nil {
		return nil, err
	}
	l := worker.New(c, workflows.LaterQueue, o)
	w.does.RegisterLater(l)
	return l, nil
}

// Register adds every workflow under its wire name. Replays of recorded histories use it, too.
func Register(r worker.WorkflowRegistry) {
	for name, does := range map[string]any{
		workflows.DeliverWebhooksName:  workflows.DeliverWebhooks,
		workflows.FailureStreakName:    workflows.FailureStreak,
		workflows.MailAdminsName:       workflows.MailAdmins,
		workflows.PublishChangelogName: workflows.PublishChangelog,
		workflows.RecoverWebhookName:   workflows.RecoverWebhook,
		workflows.ReplayDeliveryName:   workflows.ReplayDelivery,
		workflows.SubjectRequestName:   workflows.SubjectRequest,
		workflows.SweepOutboxName:      workflows.SweepOutbox,
		workflows.RemoveExpiredName:    workflows.RemoveExpired,

		workflows.ConfirmInteractionName: workflows.ConfirmInteraction,
		workflows.BackfillContactsName:   workflows.BackfillContacts,
		workflows.NotifySubscribersName:  workflows.NotifySubscribers,
	} {
		r.RegisterWorkflowWithOptions(does, workflow.RegisterOptions{Name: name})
	}
}
