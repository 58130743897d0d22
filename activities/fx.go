package activities

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.uber.org/fx"

	"earshot/internal/backfill"
	"earshot/internal/feedback"
	"earshot/internal/jobs"
	"earshot/internal/privacy"
	"earshot/internal/publicactions"
	"earshot/internal/subscribers"
	"earshot/internal/webhooks"
)

// Module makes the activities, except for those that package worker makes from settings.
var Module = fx.Module("activities", fx.Provide(
	NewChangelog, NewRecoveries, NewStreaks, NewMails, NewInteractions, NewSubjects, NewBackfills, NewSubscribers, newOutbox,
))

// All are the activities that the workflows call.
type All struct {
	fx.In

	Deliveries    *Deliveries
	Outbox        *Outbox
	Changelog     *Changelog
	Recoveries    *Recoveries
	Streaks       *Streaks
	Mails         *Mails
	Retention     *Retention
	Privacy       *Subjects
	Backfills     *Backfills
	PublicActions *Interactions
	Subscribers   *Subscribers
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
		MailLinkName:          a.PublicActions.MailLink,
		LookAtInteractionName: a.PublicActions.Look,
		ContinueSubjectName:   a.Privacy.ContinueSubjectRequest,
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

	Feedback      *feedback.Service
	Webhooks      *webhooks.Service
	Privacy       *privacy.Service
	Backfills     *backfill.Service
	PublicActions *publicactions.Service
	Subscribers   *subscribers.Service
}

// sweeps lists the parts of the sweep after the deliveries, the most urgent first, each with the sweep of its
// job. A new part needs no version of the workflow.
var sweeps = []struct {
	part string
	of   func(swept) jobs.Sweep
}{
	{"entries", func(s swept) jobs.Sweep { return s.Feedback.SweepEntries() }},
	{"recoveries", func(s swept) jobs.Sweep { return s.Webhooks.SweepRecoveries() }},
	{"subject requests", func(s swept) jobs.Sweep { return s.Privacy.Sweep() }},
	{"backfills", func(s swept) jobs.Sweep { return s.Backfills.Sweep() }},
	{"streaks", func(s swept) jobs.Sweep { return s.Webhooks.SweepStreaks() }},
	{"interactions", func(s swept) jobs.Sweep { return s.PublicActions.Sweep() }},
	{"subscribers", func(s swept) jobs.Sweep { return s.Subscribers.Sweep() }},
}

// SweepParts returns the names of the parts of the sweep, the most urgent first. Each finds one kind of
// missing run.
func SweepParts() []string {
	parts := []string{deliveriesPart}
	for _, s := range sweeps {
		parts = append(parts, s.part)
	}
	return parts
}
