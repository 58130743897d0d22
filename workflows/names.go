// Package workflows holds what runs durably in Temporal, one file per workflow.
// The code here is deterministic: no clock, no randomness, no network and no
// database of its own; activities have those.
package workflows

// Wire names. Open runs and operators know them, so they stay when the Go
// identifier changes.
const (
	// DeliverWebhooksName is the workflow of one delivery or a group.
	DeliverWebhooksName = "deliver_webhooks"
	// SweepOutboxName is the workflow that finds forgotten deliveries.
	SweepOutboxName = "sweep_outbox"

	// PublishChangelogName is the workflow of an entry whose publication is
	// scheduled. Its id is the entry's.
	PublishChangelogName = "publish_changelog"

	// ReplayDeliveryName is the workflow that an operator starts to send a delivery
	// again.
	ReplayDeliveryName = "replay_delivery"
	// RecoverWebhookName is the workflow of a recovery. Its id is the recovery's.
	RecoverWebhookName = "recover_webhook"

	// AttemptFirstName and the following are the activities.
	AttemptFirstName = "attempt_first"
	AttemptLaterName = "attempt_later"
	SweepActivity    = "sweep_outbox_rows"
	PublishActivity  = "publish_entry"

	// ReplayActivity is replay_delivery's, the others recover_webhook's.
	ReplayActivity         = "insert_replay"
	CountFailedActivity    = "count_failed"
	ReplayFailedActivity   = "replay_failed"
	CancelRecoveryActivity = "cancel_recovery"

	// StatusQuery answers with Status.
	StatusQuery = "status"

	// RescheduledSignal tells that an entry's moment was moved or taken away.
	RescheduledSignal = "rescheduled"

	// SweepSchedule starts the sweep.
	SweepSchedule = "sweep_outbox"
)

// Task queues. The lane of later attempts has workers and slots of its own, so
// that dead and slow receivers never hold what healthy ones need.
const (
	MainQueue  = "earshot"
	LaterQueue = "earshot-later"
)
