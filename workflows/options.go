package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// Between two pages of 50 replays: 100 a second at most, so that a receiver that
// has just come back isn't knocked down by what it missed, and what happens
// meanwhile gets through. 100,000 deliveries take a quarter of an hour.
const recoverPause = 500 * time.Millisecond

// subjectPause is longer than an attempt takes, and than anybody waits for a lock.
const subjectPause = 15 * time.Second

// VersioningBehavior moves open runs to the current version of the workers, where
// those have versions: recorded histories of every version are replayed by each.
const VersioningBehavior = workflow.VersioningBehaviorAutoUpgrade

var (
	// For what fails for reasons of our own only.
	tirelessly = &temporal.RetryPolicy{
		InitialInterval:    time.Second,
		BackoffCoefficient: 2,
		MaximumInterval:    30 * time.Second,
	}

	// The first round runs inside the first workflow task: 10 s for the
	// attempt, the rest for a slot and memory, the claims, a token (1 s each) and the
	// record. It isn't repeated: what fails here goes on in the later queue.
	firstRound = workflow.LocalActivityOptions{
		StartToCloseTimeout: 20 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	}

	// Later attempts are repeated for as long as it takes: they fail only for
	// reasons of our own, which must not use up a receiver's five attempts.
	laterRound = workflow.ActivityOptions{
		// 10 s for a slot and memory, 1 s for a token, 10 s for the attempt, the rest for the
		// database.
		StartToCloseTimeout: time.Minute,
		// Three heartbeats, 12 s: a killed worker is noticed about when its
		// deliveries' leases end.
		HeartbeatTimeout: 3 * activities.HeartbeatInterval,
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

	// Pages of milliseconds for some ten seconds, with a heartbeat after each, so that a killed
	// worker is noticed soon.
	subjectRound = workflow.ActivityOptions{
		StartToCloseTimeout: 2 * time.Minute,
		HeartbeatTimeout:    30 * time.Second,
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

	// As long as a link counts. What the mail server refuses for good isn't tried again.
	linkRound = workflow.ActivityOptions{
		StartToCloseTimeout:    time.Minute,
		ScheduleToCloseTimeout: 24 * time.Hour,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    time.Second, // somebody looks into the mailbox
			BackoffCoefficient: 2,
			MaximumInterval:    5 * time.Minute,
		},
	}

	// Some ten seconds of e-mails, with a heartbeat after each. A mail server that is away makes all of
	// them wait; the rows say when it is too late for one.
	subscribersRound = workflow.ActivityOptions{
		// The last e-mail of a round may take as long as a send may, and waits for its turn before.
		StartToCloseTimeout: 3 * time.Minute,
		HeartbeatTimeout:    time.Minute,
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
		// It ends by itself after 45 minutes; the next run goes on.
		StartToCloseTimeout: 50 * time.Minute,
		// A batch takes milliseconds.
		HeartbeatTimeout: time.Minute,
		RetryPolicy:      &temporal.RetryPolicy{MaximumAttempts: 3},
	}
)
