// Package workflows holds the durable jobs that run in Temporal, one file per workflow. The code is
// deterministic: it has no clock, randomness, network or database. Activities provide those.
package workflows

// Wire names. Open runs and operators use them, so they stay the same when a Go identifier changes.
const (
	// StatusQuery returns Status in deliver_webhooks, and activities.RecoverProgress in
	// recover_webhook.
	StatusQuery = "status"

	// RetryNowUpdate and GiveUpUpdate are updates of deliver_webhooks. The argument is the id of a
	// delivery, or empty for all that are pending.
	RetryNowUpdate = "retry_now"
	GiveUpUpdate   = "give_up"
)

// Task queues. The later queue has its own workers and slots, so that dead and slow receivers don't
// take capacity from healthy ones.
const (
	MainQueue  = "earshot"
	LaterQueue = "earshot-later"
)
