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

	// FailureStreakName is the workflow of a webhook whose deliveries fail in a row.
	// Its id is the webhook's.
	FailureStreakName = "failure_streak"

	// MailAdminsName is the workflow that tells of a webhook that was disabled.
	MailAdminsName = "mail_admins"

	// ConfirmInteractionName is the workflow of an end-user's vote, post or comment that waits
	// for a confirmation by e-mail. Its id is the interaction's.
	ConfirmInteractionName = "confirm_interaction"

	// ReplayDeliveryName is the workflow that an operator starts to send a delivery
	// again.
	ReplayDeliveryName = "replay_delivery"
	// RecoverWebhookName is the workflow of a recovery. Its id is the recovery's.
	RecoverWebhookName = "recover_webhook"

	// SubjectRequestName is the workflow of an export or an erasure of a person. Its id is
	// the receipt's.
	SubjectRequestName = "subject_request"

	// BackfillContactsName is the workflow of a search for contacts in old activity. Its id is the
	// backfill's.
	BackfillContactsName = "backfill_contacts"
	// NotifySubscribersName is the workflow of the e-mails to the end-users of an organization.
	// Its id is the organization's.
	NotifySubscribersName = "notify_subscribers"

	// AttemptFirstName and the following are the activities.
	AttemptFirstName = "attempt_first"
	AttemptLaterName = "attempt_later"
	SweepActivity    = "sweep_outbox_rows"
	PublishActivity  = "publish_entry"
	RemoveActivity   = "remove_expired_rows"

	// ReplayActivity is replay_delivery's, the others recover_webhook's.
	ReplayActivity         = "insert_replay"
	CountFailedActivity    = "count_failed"
	ReplayFailedActivity   = "replay_failed"
	CancelRecoveryActivity = "cancel_recovery"

	// ContinueSubjectActivity is subject_request's.
	ContinueSubjectActivity = "continue_subject_request"

	// ContinueBackfillActivity and CancelBackfillActivity are backfill_contacts'.
	ContinueBackfillActivity = "continue_backfill"
	CancelBackfillActivity   = "cancel_backfill"

	// LookAtStreakActivity and DisableWebhookActivity are failure_streak's,
	// MailAdminActivity is mail_admins'.
	LookAtStreakActivity   = "look_at_streak"
	DisableWebhookActivity = "disable_webhook"
	MailAdminActivity      = "mail_admin"

	// MailLinkActivity and LookAtInteractionActivity are confirm_interaction's.
	MailLinkActivity          = "mail_link"
	LookAtInteractionActivity = "look_at_interaction"

	// MailSubscribersActivity is notify_subscribers'.
	MailSubscribersActivity = "mail_subscribers"

	// GiveUpActivity and ReviveActivity are deliver_webhooks', EndTerminatedActivity
	// is sweep_outbox's.
	GiveUpActivity        = "give_up_deliveries"
	ReviveActivity        = "revive_deliveries"
	EndTerminatedActivity = "end_terminated"

	// StatusQuery answers with Status in deliver_webhooks and with
	// activities.RecoverProgress in recover_webhook.
	StatusQuery = "status"

	// RetryNowUpdate and GiveUpUpdate are asked of deliver_webhooks. Their argument is
	// the id of a delivery, or nothing for all that are pending.
	RetryNowUpdate = "retry_now"
	GiveUpUpdate   = "give_up"

	// RescheduledSignal tells that an entry's moment was moved or taken away.
	RescheduledSignal = "rescheduled"

	// StreakSignal tells that a webhook's streak grew or ended.
	StreakSignal = "streak_moved"

	// ConfirmedSignal tells that an interaction was confirmed.
	ConfirmedSignal = "confirmed"

	// UpdatedSignal tells that there is more to tell end-users of.
	UpdatedSignal = "updated"

	// SweepSchedule starts the sweep, RetentionSchedule the retention.
	SweepSchedule     = "sweep_outbox"
	RetentionSchedule = "remove_expired"
)

// Task queues. The later queue has workers and slots of its own, so
// that dead and slow receivers never hold what healthy ones need.
const (
	MainQueue  = "earshot"
	LaterQueue = "earshot-later"
)
