package activities

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/internal/failpoint"
	"earshot/internal/publicid"
	"earshot/internal/webhooks"
)

// StreakFollower sees to it that a webhook's streak of failures is followed by a
// workflow for as long as it lasts.
type StreakFollower interface {
	// StreakGrew starts the workflow where there is none, and tells it otherwise.
	StreakGrew(ctx context.Context, webhook publicid.Webhook) error
	// StreakEnded tells the workflow, if there is one.
	StreakEnded(ctx context.Context, webhook publicid.Webhook) error
}

// streakMove is what an attempt did to the streak of its webhook.
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

// followStreaks tells of the streaks that moved, each once. An error lets the
// activity be made again; its rows then say once more what they did.
func (d *Deliveries) followStreaks(ctx context.Context, of []Due, outcomes []outcome) error {
	moves := map[publicid.Webhook]streakMove{}
	for i, o := range outcomes {
		// Whoever follows looks at the row. What is told only decides whether there
		// has to be somebody, and a failure among successes may be the last.
		moves[of[i].Webhook] = max(moves[of[i].Webhook], o.streak)
	}
	for webhook, move := range moves {
		var err error
		switch move {
		case streakStayed:
		case streakEnded:
			err = d.streaks.StreakEnded(ctx, webhook)
		case streakGrew:
			failpoint.Hit(failpoint.BeforeStreakSignal)
			err = d.streaks.StreakGrew(ctx, webhook)
			failpoint.Hit(failpoint.AfterStreakSignal)
		}
		if err != nil {
			return errors.Wrap(err, "follow the webhook's streak")
		}
	}
	return nil
}

// Streaks are the activities of the workflow that follows a streak.
type Streaks struct {
	webhooks *webhooks.Service
	counts   *Counts
}

// NewStreaks makes the activities.
func NewStreaks(w *webhooks.Service, counts *Counts) *Streaks { return &Streaks{w, counts} }

// StreakParams name the webhook.
type StreakParams struct {
	Webhook publicid.Webhook `json:"webhook"`
}

// Streak is a webhook's streak as its row has it.
type Streak struct {
	// Open says that there is something to follow: the webhook is there, enabled,
	// and failing.
	Open         bool                  `json:"open"`
	Organization publicid.Organization `json:"organization"`
	Failures     int                   `json:"failures"`
	// Limit is the streak that disables the webhook.
	Limit int `json:"limit"`
}

// LookAtStreak reads the streak.
func (s *Streaks) LookAtStreak(ctx context.Context, p StreakParams) (Streak, error) {
	found, err := s.webhooks.Streak(ctx, p.Webhook)
	return Streak{
		Open: found.Open, Organization: found.Organization, Failures: found.Failures, Limit: webhooks.MaxConsecutiveFailures,
	}, err
}

// DisableParams name the webhook and the run that follows its streak.
type DisableParams struct {
	Webhook publicid.Webhook `json:"webhook"`
	Run     string           `json:"run"`
}

// Disabled tells whether the run disabled the webhook, and whom to tell.
type Disabled struct {
	Disabled bool            `json:"disabled"`
	Admins   []publicid.User `json:"admins,omitempty"`
}

// DisableWebhook disables the webhook if its streak is long enough. Doing it again
// for the same run answers the same.
func (s *Streaks) DisableWebhook(ctx context.Context, p DisableParams) (Disabled, error) {
	admins, disabled, err := s.webhooks.DisableFailing(ctx, p.Webhook, p.Run)
	if disabled {
		s.counts.disable(ctx)
		failpoint.Hit(failpoint.AfterDisable)
	}
	return Disabled{Disabled: disabled, Admins: admins}, err
}
