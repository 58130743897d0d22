package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"earshot/internal/publicid"
)

const (
	// Above an attempt's 10 s, so that a first round fits into one workflow
	// task even when a receiver uses its whole time, and above the lease of one,
	// which ends after 12 s: what a kill cut off is made again when both are over,
	// so within 5 s of the attempt's own time, with 2 s to spare for a backlog.
	workflowTaskTimeout = 13 * time.Second
	// How often the sweep looks, and how overdue a delivery is then. Starts are
	// lost only when a process dies or Temporal is away, so once a minute is
	// often enough; a delivery waits its turn for seconds at the most.
	sweepEvery = time.Minute
	sweepGrace = 30 * time.Second
	// Between two pages of 50 replays: 100 a second at most, so that a receiver that
	// has just come back isn't knocked down by what it missed, and what happens
	// meanwhile gets through. 100,000 deliveries take a quarter of an hour.
	recoverPause = 500 * time.Millisecond
	// Expired rows are in nobody's way: often enough that a run finds little.
	retentionEvery = time.Hour
)

// VersioningBehavior moves open runs to the current version of the workers, where
// those have versions: recorded histories of every version are replayed by each.
const VersioningBehavior = workflow.VersioningBehaviorAutoUpgrade

// fairTo has a server with task-queue fairness share its queues between organizations.
// The run's activities and child workflows inherit it; other servers ignore it.
func fairTo(organization publicid.Organization) temporal.Priority {
	return temporal.Priority{FairnessKey: organization.String()}
}

var (
	// For what fails for reasons of our own only.
	tirelessly = &temporal.RetryPolicy{
		InitialInterval:    time.Second,
		BackoffCoefficient: 2,
		MaximumInterval:    30 * time.Second,
	}

	// The first round runs inside the first workflow task: 10 s for the
	// attempt, the rest for the place, the claim and the record. It isn't
	// repeated: what fails here goes on in the lane of later attempts.
	firstRound = workflow.LocalActivityOptions{
		StartToCloseTimeout: 20 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	}

	// Later attempts are repeated for as long as it takes: they fail only for
	// reasons of our own, which must not use up a receiver's five attempts.
	laterRound = workflow.ActivityOptions{
		// 10 s for a place, 10 s for the attempt, the rest for the database.
		StartToCloseTimeout: time.Minute,
		// Three beats of 4 s: a killed worker is noticed about when its
		// deliveries' leases end.
		HeartbeatTimeout: 12 * time.Second,
		RetryPolicy:      tirelessly,
	}

	// One transaction, repeated for as long as it takes.
	transaction = workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		RetryPolicy:         tirelessly,
	}

	// Repeated for as long as it takes: only our own faults make it fail, except for
	// what is refused for good.
	recoverRound = workflow.ActivityOptions{
		// Mostly one short transaction; to look through a million deliveries for what
		// failed takes seconds.
		StartToCloseTimeout: 2 * time.Minute,
		RetryPolicy:         tirelessly,
	}

	// A mail server may be away for long, and what it refuses for good isn't tried
	// again. After three days nobody needs the news any more: mail servers give up
	// then, too.
	mailRound = workflow.ActivityOptions{
		StartToCloseTimeout:    time.Minute,
		ScheduleToCloseTimeout: 72 * time.Hour,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    5 * time.Second,
			BackoffCoefficient: 2,
			MaximumInterval:    15 * time.Minute,
		},
	}

	sweepRound = workflow.ActivityOptions{
		// What one activity looks at takes seconds; the next one goes on.
		StartToCloseTimeout: 5 * time.Minute,
		HeartbeatTimeout:    time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 3},
	}

	removeRound = workflow.ActivityOptions{
		// It ends by itself after 5 minutes; the next run goes on.
		StartToCloseTimeout: 10 * time.Minute,
		// A batch takes milliseconds.
		HeartbeatTimeout: time.Minute,
		RetryPolicy:      &temporal.RetryPolicy{MaximumAttempts: 3},
	}
)
