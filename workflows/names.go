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
	// RemoveExpiredName is the workflow of the retention.
	RemoveExpiredName = "remove_expired"

	// PublishChangelogName is the workflow of an entry whose publication is
	// scheduled. Its id is the entry's.
	PublishChangelogName = "publish_changelog"

	// AttemptFirstName and the following are the activities.
	AttemptFirstName = "attempt_first"
	AttemptLaterName = "attempt_later"
	SweepActivity    = "sweep_outbox_rows"
	PublishActivity  = "publish_entry"
	RemoveActivity   = "remove_expired_rows"

	// StatusQuery answers with Status.
	StatusQuery = "status"

	// RescheduledSignal tells that an entry's moment was moved or taken away.
	RescheduledSignal = "rescheduled"

	// SweepSchedule starts the sweep, RetentionSchedule the retention.
	SweepSchedule     = "sweep_outbox"
	RetentionSchedule = "remove_expired"
)

// Task queues. The lane of later attempts has workers and slots of its own, so
// that dead and slow receivers never hold what healthy ones need.
const (
	MainQueue  = "earshot"
	LaterQueue = "earshot-later"
)
