package worker

import (
	"time"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/worker"

	"earshot/activities"
	"earshot/internal/machine"
	"earshot/workflows"
)

const (
	// Groups of later attempts at once, at most and at least. Each may hold 60
	// deliveries, of which the activities let 64 at a time go to one webhook. They
	// mostly wait for receivers, so what they take is memory: between the two a
	// machine that is short of it, or of processor time, takes no more.
	laterGroups    = 200
	laterGroupsMin = 80
	// The shares of memory and processor time beyond which it takes no more: the
	// API and the first rounds need the rest.
	memoryTarget    = 0.8
	processorTarget = 0.9
	// Between two groups beyond the floor, so that the one shows what it takes
	// before the next: 50 groups a second are 3,000 attempts a second.
	laterRamp = 20 * time.Millisecond

	// Requests for tasks that wait at Temporal, of each kind. Two at least, so that
	// one can bring in a task while the other waits for the next. Each holds a call
	// open, which costs Temporal something too, and ten bring in more than two
	// processors can do.
	pollersMin = 2
	pollersMax = 10

	// Runs whose state this process keeps between two of their tasks, most of them
	// waiting for a retry. One takes some 60 kB (measured), so all take 120 MB. Any
	// other is replayed from a history of some dozens of events, which takes a few
	// milliseconds, at most four times in its life.
	cachedRuns = 2000
)

// pollers are as many as Temporal's answers say that there is work for.
func pollers() worker.PollerBehavior {
	return worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: pollersMin, MinimumNumberOfPollers: pollersMin, MaximumNumberOfPollers: pollersMax,
	})
}

// base is what both queues have in common.
func (w *Worker) base(giveUp func(error)) worker.Options {
	o := worker.Options{
		WorkflowTaskPollerBehavior: pollers(), ActivityTaskPollerBehavior: pollers(),
		WorkerStopTimeout: w.options.Drain, OnFatalError: giveUp,
		MaxHeartbeatThrottleInterval: activities.HeartbeatInterval,
	}
	if v := w.options.Version; v != (worker.WorkerDeploymentVersion{}) {
		// Every version's code replays every recorded history, so runs that wait
		// for a retry needn't keep the old one alive.
		o.DeploymentOptions = worker.DeploymentOptions{
			UseVersioning: true, Version: v, DefaultVersioningBehavior: workflows.VersioningBehavior,
		}
	}
	return o
}

// laterTuner gives the later queue its slots by what the machine has.
func laterTuner() (worker.WorkerTuner, error) {
	limits := worker.DefaultResourceControllerOptions()
	limits.MemTargetPercent, limits.CpuTargetPercent = memoryTarget, processorTarget
	limits.InfoSupplier = &machine.Usage{}
	groups, err := worker.NewResourceBasedSlotSupplier(worker.NewResourceController(limits),
		worker.ResourceBasedSlotSupplierOptions{MinSlots: laterGroupsMin, MaxSlots: laterGroups, RampThrottle: laterRamp})
	if err != nil {
		return nil, errors.Wrap(err, "size the later queue")
	}
	// The queue has nothing else, but the SDK wants a size for each kind.
	none, err := worker.NewFixedSizeSlotSupplier(1)
	if err != nil {
		return nil, errors.Wrap(err, "size the later queue")
	}
	tuner, err := worker.NewCompositeTuner(worker.CompositeTunerOptions{
		ActivitySlotSupplier: groups, WorkflowSlotSupplier: none, LocalActivitySlotSupplier: none,
		NexusSlotSupplier: none, SessionActivitySlotSupplier: none,
	})
	if err != nil {
		return nil, errors.Wrap(err, "size the later queue")
	}
	return tuner, nil
}
