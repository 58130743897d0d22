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
	// laterGroups and laterGroupsMin limit the groups of later attempts that run at the same time.
	// Each group has up to 60 deliveries, and the activities run up to 64 attempts at a time per
	// webhook. Groups mostly wait for receivers, so they use memory. Between the two limits, a
	// machine that is short of memory or processor time takes no further groups.
	laterGroups    = 200
	laterGroupsMin = 80
	// memoryTarget and processorTarget are the shares above which the worker takes no further
	// groups. The API and the first rounds need the rest.
	memoryTarget    = 0.8
	processorTarget = 0.9
	// laterRamp is the pause between two groups above the minimum. The resource use of a group is
	// visible before the next one starts. The limit of 50 groups a second means 3,000 attempts a
	// second.
	laterRamp = 20 * time.Millisecond

	// pollersMin and pollersMax limit the open requests for tasks, of each kind. With two, one can
	// bring a task while the other waits for the next. Each is an open call, which has a cost for
	// Temporal. Ten bring more tasks than two processors can handle.
	pollersMin = 2
	pollersMax = 10

	// cachedRuns is the number of runs whose state this process keeps between two tasks. Most of
	// them wait for a retry. One takes about 60 kB (measured), so all take 120 MB. A run outside of
	// the cache is replayed from some dozens of events. That takes a few milliseconds, at most four
	// times per run.
	cachedRuns = 2000
)

// pollers returns pollers whose number follows the amount of work that Temporal reports.
func pollers() worker.PollerBehavior {
	return worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: pollersMin, MinimumNumberOfPollers: pollersMin, MaximumNumberOfPollers: pollersMax,
	})
}

// base returns the options that both queues share.
func (w *Worker) base(giveUp func(error)) worker.Options {
	o := worker.Options{
		WorkflowTaskPollerBehavior: pollers(), ActivityTaskPollerBehavior: pollers(),
		WorkerStopTimeout: w.options.Drain, OnFatalError: giveUp,
		MaxHeartbeatThrottleInterval: activities.HeartbeatInterval,
	}
	if v := w.options.Version; v != (worker.WorkerDeploymentVersion{}) {
		// The code of every version replays every recorded history, so waiting runs don't need
		// workers of their old version.
		o.DeploymentOptions = worker.DeploymentOptions{
			UseVersioning: true, Version: v, DefaultVersioningBehavior: workflows.VersioningBehavior,
		}
	}
	return o
}

// laterTuner sizes the later queue's slots by the machine's free resources.
func laterTuner() (worker.WorkerTuner, error) {
	limits := worker.DefaultResourceControllerOptions()
	limits.MemTargetPercent, limits.CpuTargetPercent = memoryTarget, processorTarget
	limits.InfoSupplier = &machine.Usage{}
	groups, err := worker.NewResourceBasedSlotSupplier(worker.NewResourceController(limits),
		worker.ResourceBasedSlotSupplierOptions{MinSlots: laterGroupsMin, MaxSlots: laterGroups, RampThrottle: laterRamp})
	if err != nil {
		return nil, errors.Wrap(err, "size the later queue")
	}
	// The queue has only activities, but the SDK requires a size for each kind.
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
