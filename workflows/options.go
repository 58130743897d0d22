package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
)

// recoverPause is the pause between two pages of 50 replays, which limits a recovery to 100 a
// second. A receiver that has just come back isn't overloaded, and new deliveries get through.
// 100,000 deliveries take about a quarter of an hour.
const recoverPause = 500 * time.Millisecond

// subjectPause is longer than an attempt takes, and longer than a request waits for a lock.
const subjectPause = 15 * time.Second

// VersioningBehavior moves open runs to the current version of the workers, where workers have
// versions. This is safe because each version is tested against the recorded histories of all
// versions.
const VersioningBehavior = workflow.VersioningBehaviorAutoUpgrade

var (
	// tirelessly retries without end. It is for activities that fail only because of our own
	// faults.
	tirelessly = &temporal.RetryPolicy{
		InitialInterval:    time.Second,
		BackoffCoefficient: 2,
		MaximumInterval:    30 * time.Second,
	}

	// The first round runs inside the first workflow task. An attempt takes at most 10 s. The rest
	// is for a slot and memory, the claims, a token (1 s each) and the record. The round isn't
	// retried: failed attempts continue in the later queue.
	firstRound = workflow.LocalActivityOptions{
		StartToCloseTimeout: 20 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	}

	// Later attempts are retried without a limit. The activity fails only because of our own
	// faults, which must not use up a receiver's five attempts.
	laterRound = workflow.ActivityOptions{
		// 10 s for a slot and memory, 1 s for a token, 10 s for the attempt, the rest for the
		// database.
		StartToCloseTimeout: time.Minute,
		// Three heartbeats, 12 s: the timeout after a worker's crash ends at about the same time as
		// its leases.
		HeartbeatTimeout: 3 * activities.HeartbeatInterval,
		RetryPolicy:      tirelessly,
	}

	// transaction is for an activity of one transaction. It is retried without a limit.
	transaction = workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		RetryPolicy:         tirelessly,
	}

	// recoverRound retries without a limit. Apart from permanent rejections, only our own faults
	// make the activity fail.
	recoverRound = workflow.ActivityOptions{
		// An activity is usually one short transaction. Searching a million deliveries for failures
		// takes seconds.
		StartToCloseTimeout: 2 * time.Minute,
		RetryPolicy:         tirelessly,
	}

	// subjectRound is for pages of milliseconds, about ten seconds of them, with a heartbeat after
	// each page. The heartbeats make a killed worker visible soon.
	subjectRound = workflow.ActivityOptions{
		StartToCloseTimeout: 2 * time.Minute,
		HeartbeatTimeout:    30 * time.Second,
		RetryPolicy:         tirelessly,
	}

	// A mail server may be down for a long time. Permanent rejections aren't retried. The limit of
	// three days is about the time after which mail servers give up, too.
	mailRound = workflow.ActivityOptions{
		StartToCloseTimeout:    time.Minute,
		ScheduleToCloseTimeout: 72 * time.Hour,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    5 * time.Second,
			BackoffCoefficient: 2,
			MaximumInterval:    15 * time.Minute,
		},
	}

	// linkRound retries for as long as a link is valid. Permanent rejections of the mail server
	// aren't retried.
	linkRound = workflow.ActivityOptions{
		StartToCloseTimeout:    time.Minute,
		ScheduleToCloseTimeout: 24 * time.Hour,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    time.Second, // the end-user is waiting for the e-mail
			BackoffCoefficient: 2,
			MaximumInterval:    5 * time.Minute,
		},
	}

	// subscribersRound is for about ten seconds of e-mails, with a heartbeat before each. While the
	// mail server is down, all e-mails wait. The rows say when an e-mail is too late to be sent.
	subscribersRound = workflow.ActivityOptions{
		// The last e-mail of a round waits for its turn and may then use the whole timeout of a
		// send.
		StartToCloseTimeout: 3 * time.Minute,
		HeartbeatTimeout:    time.Minute,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    5 * time.Second,
			BackoffCoefficient: 2,
			MaximumInterval:    15 * time.Minute,
		},
	}

	// endTerminatedRound is short, because lost deliveries wait for it.
	endTerminatedRound = workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		HeartbeatTimeout:    30 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 2},
	}

	sweepRound = workflow.ActivityOptions{
		// One activity takes seconds and the next one continues.
		StartToCloseTimeout: 5 * time.Minute,
		HeartbeatTimeout:    time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 3},
	}

	removeRound = workflow.ActivityOptions{
		// It ends by itself after 45 minutes, and the next run continues.
		StartToCloseTimeout: 50 * time.Minute,
		// A batch takes milliseconds.
		HeartbeatTimeout: time.Minute,
		RetryPolicy:      &temporal.RetryPolicy{MaximumAttempts: 3},
	}
)
