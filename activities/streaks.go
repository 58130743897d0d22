package activities

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/internal/failpoint"
	"earshot/internal/jobs"
	"earshot/internal/publicid"
	"earshot/internal/webhooks"
)

// The wire names of the activities.
const (
	LookAtStreakName   = "look_at_streak"
	DisableWebhookName = "disable_webhook"
)

// Doer sends a request about a job at once, and returns the error to the activity, which Temporal
// repeats.
type Doer interface {
	Do(ctx context.Context, r jobs.Request) error
}

// streakMove is the effect of an attempt on its webhook's streak.
type streakMove int

const (
	streakStayed streakMove = iota
	streakEnded
	streakGrew
)

func moveOf(failed bool) streakMove {
	if failed {
		return streakGrew
	}
	return streakEnded
}

// followStreaks sends one signal for each streak that moved. After an error Temporal retries the
// activity, and the rows then report the same moves again.
func (d *Deliveries) followStreaks(ctx context.Context, of []Due, outcomes []outcome) error {
	moves := map[publicid.Webhook]streakMove{}
	for i, o := range outcomes {
		// The workflow reads the row. The move only decides whether a workflow must run, and a
		// failure among successes may be the last outcome.
		moves[of[i].Webhook] = max(moves[of[i].Webhook], o.streak)
	}
	for webhook, move := range moves {
		var err error
		switch move {
		case streakStayed:
		case streakEnded:
			err = d.does.Do(ctx, webhooks.StreakEnded(webhook))
		case streakGrew:
			failpoint.Hit(failpoint.BeforeStreakSignal)
			err = d.does.Do(ctx, webhooks.StreakGrew(webhook))
			failpoint.Hit(failpoint.AfterStreakSignal)
		}
		if err != nil {
			return errors.Wrap(err, "follow the webhook's streak")
		}
	}
	return nil
}

// Streaks are the activities of the workflow failure_streak.
type Streaks struct {
	webhooks *webhooks.Service
	counts   *Counts
}

// NewStreaks makes the activities.
func NewStreaks(w *webhooks.Service, counts *Counts) *Streaks { return &Streaks{w, counts} }

// StreakParams names the webhook.
type StreakParams struct {
	Webhook publicid.Webhook `json:"webhook"`
}

// Streak is a webhook's streak as stored in its row.
type Streak struct {
	// Open says that the streak must be followed: the webhook exists, is enabled, and fails.
	Open         bool                  `json:"open"`
	Organization publicid.Organization `json:"organization"`
	Failures     int                   `json:"failures"`
	// Limit is the number of failures that disables the webhook.
	Limit int `json:"limit"`
}

// LookAtStreak reads the streak.
func (s *Streaks) LookAtStreak(ctx context.Context, p StreakParams) (Streak, error) {
	found, err := s.webhooks.Streak(ctx, p.Webhook)
	return Streak{
		Open: found.Open, Organization: found.Organization, Failures: found.Failures, Limit: webhooks.MaxConsecutiveFailures,
	}, err
}

// DisableParams names the webhook and the run that follows its streak.
type DisableParams struct {
	Webhook publicid.Webhook `json:"webhook"`
	Run     string           `json:"run"`
}

// Disabled is the result of DisableWebhook, with the admins to notify.
type Disabled struct {
	Disabled bool            `json:"disabled"`
	Admins   []publicid.User `json:"admins,omitempty"`
}

// DisableWebhook disables the webhook if its streak is long enough. A repetition by the same run
// returns the same result.
func (s *Streaks) DisableWebhook(ctx context.Context, p DisableParams) (Disabled, error) {
	admins, disabled, err := s.webhooks.DisableFailing(ctx, p.Webhook, p.Run)
	if disabled {
		s.counts.disable(ctx)
		failpoint.Hit(failpoint.AfterDisable)
	}
	return Disabled{Disabled: disabled, Admins: admins}, err
}
