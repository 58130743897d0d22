// Package workflows holds the durable jobs that run in Temporal, one file per workflow. The code is
// deterministic: it has no clock, randomness, network or database. Activities provide those.
package workflows

// Wire names. Open runs and operators use them, so they stay the same when a Go identifier changes.
const (
	// DeliverWebhooksName is the workflow of one delivery or a group.
	DeliverWebhooksName = "deliver_webhooks"
	// SweepOutboxName is the workflow that finds deliveries without a run.
	SweepOutboxName = "sweep_outbox"
	// RemoveExpiredName is the workflow of the retention.
	RemoveExpiredName = "remove_expired"

	// PublishChangelogName is the workflow of a changelog entry with a scheduled publication. Its
	// id is the entry's.
	PublishChangelogName = "publish_changelog"

	// FailureStreakName is the workflow of a webhook whose deliveries fail in a row.
	// Its id is the webhook's.
	FailureStreakName = "failure_streak"

	// MailAdminsName is the workflow that mails the admins about a disabled webhook.
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

	// ReplayActivity belongs to replay_delivery, the others to recover_webhook.
	ReplayActivity         = "insert_replay"
	CountFailedActivity    = "count_failed"
	ReplayFailedActivity   = "replay_failed"
	CancelRecoveryActivity = "cancel_recovery"

	// ContinueSubjectActivity belongs to subject_request.
	ContinueSubjectActivity = "continue_subject_request"

	// ContinueBackfillActivity and CancelBackfillActivity belong to backfill_contacts.
	ContinueBackfillActivity = "continue_backfill"
	CancelBackfillActivity   = "cancel_backfill"

	// LookAtStreakActivity and DisableWebhookActivity belong to failure_streak, MailAdminActivity
	// to mail_admins.
	LookAtStreakActivity   = "look_at_streak"
	DisableWebhookActivity = "disable_webhook"
	MailAdminActivity      = "mail_admin"

	// MailLinkActivity and LookAtInteractionActivity belong to confirm_interaction.
	MailLinkActivity          = "mail_link"
	LookAtInteractionActivity = "look_at_interaction"

	// MailSubscribersActivity belongs to notify_subscribers.
	MailSubscribersActivity = "mail_subscribers"

	// GiveUpActivity and ReviveActivity belong to deliver_webhooks, EndTerminatedActivity to
	// sweep_outbox.
	GiveUpActivity        = "give_up_deliveries"
	ReviveActivity        = "revive_deliveries"
	EndTerminatedActivity = "end_terminated"

	// StatusQuery returns Status in deliver_webhooks, and activities.RecoverProgress in
	// recover_webhook.
	StatusQuery = "status"

	// RetryNowUpdate and GiveUpUpdate are updates of deliver_webhooks. The argument is the id of a
	// delivery, or empty for all that are pending.
	RetryNowUpdate = "retry_now"
	GiveUpUpdate   = "give_up"

	// RescheduledSignal says that an entry's publication was moved or unscheduled.
	RescheduledSignal = "rescheduled"

	// StreakSignal says that a webhook's streak grew or ended.
	StreakSignal = "streak_moved"

	// ConfirmedSignal says that an interaction was confirmed.
	ConfirmedSignal = "confirmed"

	// UpdatedSignal says that there are new updates for end-users.
	UpdatedSignal = "updated"

	// SweepSchedule starts the sweep, RetentionSchedule the retention.
	SweepSchedule     = "sweep_outbox"
	RetentionSchedule = "remove_expired"
)

// Task queues. The later queue has its own workers and slots, so that dead and slow receivers don't
// take capacity from healthy ones.
const (
	MainQueue  = "earshot"
	LaterQueue = "earshot-later"
)
