package activities

import (
	"log/slog"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.uber.org/fx"

	"earshot/internal/backfill"
	"earshot/internal/feedback"
	"earshot/internal/interactions"
	"earshot/internal/jobs"
	"earshot/internal/store"
	"earshot/internal/subjects"
	"earshot/internal/subscribers"
	"earshot/internal/webhooks"
)

// Module makes the activities, except for those that package worker makes from settings.
var Module = fx.Module("activities", fx.Provide(
	NewChangelog, NewRecoveries, NewStreaks, NewMails, NewInteractions, NewSubjects, NewBackfills, NewSubscribers,
	func(s *store.Store, e Engine, p swept, counts *Counts, log *slog.Logger) *Outbox {
		return NewOutbox(s, e, p.sweeps(), counts, log)
	},
))

// All are the activities that the workflows call.
type All struct {
	fx.In

	Deliveries   *Deliveries
	Outbox       *Outbox
	Changelog    *Changelog
	Recoveries   *Recoveries
	Streaks      *Streaks
	Mails        *Mails
	Retention    *Retention
	Subjects     *Subjects
	Backfills    *Backfills
	Interactions *Interactions
	Subscribers  *Subscribers
}

// Register adds the activities of the main queue under their wire names.
func (a All) Register(r worker.ActivityRegistry) {
	register(r, map[string]any{
		AttemptFirstName:      a.Deliveries.AttemptFirst,
		PublishName:           a.Changelog.PublishEntry,
		SweepName:             a.Outbox.SweepOutbox,
		GiveUpName:            a.Deliveries.GiveUp,
		ReviveName:            a.Deliveries.Revive,
		EndTerminatedName:     a.Outbox.EndTerminated,
		LookAtStreakName:      a.Streaks.LookAtStreak,
		DisableWebhookName:    a.Streaks.DisableWebhook,
		MailAdminName:         a.Mails.MailAdmin,
		ReplayName:            a.Recoveries.ReplayDelivery,
		CountFailedName:       a.Recoveries.CountFailed,
		ReplayFailedName:      a.Recoveries.ReplayFailed,
		CancelRecoveryName:    a.Recoveries.CancelRecovery,
		RemoveName:            a.Retention.RemoveExpired,
		MailLinkName:          a.Interactions.MailLink,
		LookAtInteractionName: a.Interactions.Look,
		ContinueSubjectName:   a.Subjects.ContinueSubjectRequest,
		ContinueBackfillName:  a.Backfills.ContinueBackfill,
		CancelBackfillName:    a.Backfills.CancelBackfill,
		MailSubscribersName:   a.Subscribers.MailSubscribers,
	})
}

// RegisterLater adds the activities of the later queue.
func (a All) RegisterLater(r worker.ActivityRegistry) {
	register(r, map[string]any{AttemptLaterName: a.Deliveries.AttemptLater})
}

func register(r worker.ActivityRegistry, byName map[string]any) {
	for name, does := range byName {
		r.RegisterActivityWithOptions(does, activity.RegisterOptions{Name: name})
	}
}

// swept are the services whose rows the sweep looks at.
type swept struct {
	fx.In

	Feedback     *feedback.Service
	Webhooks     *webhooks.Service
	Subjects     *subjects.Service
	Backfills    *backfill.Service
	Interactions *interactions.Service
	Subscribers  *subscribers.Service
}

// sweeps are those of SweepParts after the first, in its order.
func (s swept) sweeps() []jobs.Sweep {
	return []jobs.Sweep{
		s.Feedback.SweepEntries(), s.Webhooks.SweepRecoveries(), s.Subjects.Sweep(), s.Backfills.Sweep(),
		s.Webhooks.SweepStreaks(), s.Interactions.Sweep(), s.Subscribers.Sweep(),
	}
}
