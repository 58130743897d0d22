package workflows

import (
	"strings"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// SweepOutboxName is the workflow that finds deliveries without a run.
const SweepOutboxName = "sweep_outbox"

// SweepSchedule is the schedule that starts the sweep.
const SweepSchedule = "sweep_outbox"

// SweepOutbox starts the workflows that are missing: those that were never started, and those that
// were lost. It also ends the deliveries of runs that an operator terminated. The parts after the
// deliveries share an activity, because they usually find nothing. A part that fails there stops no
// other, and gets an activity with its own retries.
func SweepOutbox(ctx workflow.Context, p activities.SweepParams) (activities.SweepResult, error) {
	if !sweepsByParts(ctx) {
		return sweepTogether(ctx, p)
	}
	// A run that was terminated before its first claim looks as if it had never been started. If this
	// activity fails, such a run's deliveries start once more.
	terminated := workflow.ExecuteActivity(summarized(ctx, endTerminatedRound, "terminated runs"), activities.EndTerminatedName)
	parts, err := sweepParts(ctx)
	if err != nil {
		return activities.SweepResult{}, err
	}
	others := sweepOthers(ctx, p, parts[1:])
	var result activities.SweepResult
	var ended activities.EndTerminatedResult
	failed := []error{terminated.Get(ctx, &ended)}
	result.GivenUp += ended.GivenUp
	p.Part = parts[0]
	failed = append(failed, sweepRows(summarized(ctx, sweepRound, p.Part), p, &result))
	for len(others) > 0 {
		var part activities.SweepResult
		failed = append(failed, others[0].Get(ctx, &part))
		result.Add(part)
		others = append(others[1:], sweepEach(ctx, p, part.Failed)...)
	}
	return result, errors.Join(failed...)
}

// sweepOthers starts the activities of the parts after the deliveries.
func sweepOthers(ctx workflow.Context, p activities.SweepParams, parts []string) []workflow.Future {
	if !sweepsOthersTogether(ctx) {
		return sweepEach(ctx, p, parts)
	}
	p.Parts = parts
	return []workflow.Future{workflow.ExecuteActivity(summarized(ctx, sweepRound, strings.Join(parts, ", ")), activities.SweepName, p)}
}

// sweepEach starts an activity for each part.
func sweepEach(ctx workflow.Context, p activities.SweepParams, parts []string) (all []workflow.Future) {
	for _, p.Part = range parts {
		all = append(all, workflow.ExecuteActivity(summarized(ctx, sweepRound, p.Part), activities.SweepName, p))
	}
	return all
}

// sweepParts returns the parts of a run.
func sweepParts(ctx workflow.Context) (parts []string, err error) {
	if !listsItsParts(ctx) {
		return []string{"deliveries", "entries", "recoveries", "subject requests", "backfills", "streaks", "interactions", "subscribers"}, nil
	}
	err = workflow.SideEffect(ctx, func(workflow.Context) any { return activities.SweepParts() }).Get(&parts)
	return parts, err
}

func summarized(ctx workflow.Context, options workflow.ActivityOptions, summary string) workflow.Context {
	options.Summary = summary
	return workflow.WithActivityOptions(ctx, options)
}

// sweepTogether is SweepOutbox of runs from before sweepsByParts.
func sweepTogether(ctx workflow.Context, p activities.SweepParams) (activities.SweepResult, error) {
	var ended activities.EndTerminatedResult
	var result activities.SweepResult
	ctx = workflow.WithActivityOptions(ctx, sweepRound)
	before := endsTerminatedFirst(ctx)
	if before {
		if err := workflow.ExecuteActivity(ctx, activities.EndTerminatedName).Get(ctx, &ended); err != nil {
			return result, err
		}
	}
	err := sweepRows(ctx, p, &result)
	if err == nil && !before && endsTerminated(ctx) {
		err = workflow.ExecuteActivity(ctx, activities.EndTerminatedName).Get(ctx, &ended)
	}
	result.GivenUp += ended.GivenUp
	return result, err
}

// sweepRows runs one activity after the other. Each continues at the place where the previous one
// stopped.
func sweepRows(ctx workflow.Context, p activities.SweepParams, result *activities.SweepResult) error {
	for {
		var part activities.SweepResult
		if err := workflow.ExecuteActivity(ctx, activities.SweepName, p).Get(ctx, &part); err != nil {
			return err
		}
		result.Add(part)
		if part.Next == nil {
			return nil
		}
		p.From = part.Next
	}
}
