package webhooks

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/ent/db/user"
	entwebhook "earshot/ent/db/webhook"
	"earshot/internal/change"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// MaxConsecutiveFailures is the number of failed deliveries in a row that disables a webhook
// (specification, Delivery and retries).
const MaxConsecutiveFailures = 50

// Streak is the number of a webhook's deliveries that failed for good since its last success, or
// since it was enabled.
type Streak struct {
	// Open is true if there is a streak to follow: the webhook exists, is enabled and is failing.
	Open         bool
	Organization publicid.Organization
	Failures     int
}

// Streak reads a webhook's streak. It acts for the service, not for a caller.
func (s *Service) Streak(ctx context.Context, id publicid.Webhook) (Streak, error) {
	found, err := s.followedWebhook(ctx, id)
	if db.IsNotFound(err) {
		return Streak{}, nil
	}
	if err != nil {
		return Streak{}, errors.Wrap(err, "load the webhook")
	}
	return Streak{
		Open:         found.Enabled && found.ConsecutiveFailures > 0,
		Organization: found.OrganizationID,
		Failures:     found.ConsecutiveFailures,
	}, nil
}

// followedWebhook loads a webhook for a workflow, which knows only its id.
func (s *Service) followedWebhook(ctx context.Context, id publicid.Webhook) (*db.Webhook, error) {
	ctx, err := postgres.InOrganizationOf(ctx, s.store, id)
	if err != nil {
		return nil, err
	}
	return s.store.Client().Webhook.Get(ctx, id)
}

// DisableFailing disables a webhook whose streak has reached the limit. It reports whether it did,
// and returns the admins who should get a notice.
//
// The parameter run identifies the caller. A repeated call with the same run gets the same answer,
// even if the webhook was changed in the meantime.
func (s *Service) DisableFailing(ctx context.Context, id publicid.Webhook, run string) (admins []publicid.User, disabled bool, err error) {
	found, err := s.followedWebhook(ctx, id)
	if db.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, errors.Wrap(err, "load the webhook")
	}
	err = s.changes.RunForService(ctx, found.OrganizationID, func(ctx context.Context, c *change.Change) error {
		admins, disabled = nil, false
		hook, err := c.Webhook.Query().Where(entwebhook.ID(id)).ForUpdate(postgres.NoKeyUpdate).Only(ctx)
		if db.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return errors.Wrap(err, "load the webhook")
		}
		switch {
		case hook.DisabledByRun != nil && *hook.DisabledByRun == run:
		case !hook.Enabled || hook.ConsecutiveFailures < MaxConsecutiveFailures:
			return nil
		default:
			at := postgres.Now()
			err := c.Webhook.UpdateOne(hook).
				SetEnabled(false).SetDisabledAt(at).SetDisabledReason(entwebhook.DisabledReasonFailures).
				SetDisabledByRun(run).SetUpdatedAt(at).Exec(ctx)
			if err != nil {
				return errors.Wrap(err, "disable the webhook")
			}
		}
		disabled = true
		admins, err = adminsOf(ctx, c.Client(), hook.OrganizationID)
		return err
	})
	if err == nil && disabled {
		s.log.WarnContext(ctx, "webhook was disabled: too many deliveries failed in a row",
			"webhookId", id, "failures", MaxConsecutiveFailures)
	}
	return admins, disabled, err
}

// isAdmin selects the recipients of notices about problems.
var isAdmin = user.RoleIn(user.RoleOwner, user.RoleAdmin)

// maxMailedAdmins limits the recipients of a notice; 50 are enough for somebody to see it. A limit
// is necessary because members choose the addresses of new members, and the mail server sends to
// all of them.
const maxMailedAdmins = 50

// adminsOf returns the oldest owners and admins of an organization.
func adminsOf(ctx context.Context, c *db.Client, organization publicid.Organization) ([]publicid.User, error) {
	admins, err := c.User.Query().Where(user.OrganizationID(organization), isAdmin).
		Order(db.Asc(user.FieldID)).Limit(maxMailedAdmins).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the organization's admins")
	}
	ids := make([]publicid.User, len(admins))
	for i, m := range admins {
		ids[i] = m.ID
	}
	return ids, nil
}

const (
	streakWorkflow = "failure_streak"
	streakSignal   = "streak_moved"
)

// StreakGrew starts or wakes the run that follows a webhook's streak.
func StreakGrew(id publicid.Webhook) jobs.Request {
	return jobs.Request{
		How: jobs.Wake, Workflow: streakWorkflow, Signal: streakSignal, ID: id.String(), Argument: "webhook",
		Summary: "counts a webhook's failures in a row", Webhook: id,
	}
}

// StreakEnded tells the run that follows a webhook's streak, if there is one.
func StreakEnded(id publicid.Webhook) jobs.Request {
	return jobs.Request{How: jobs.Tell, Workflow: streakWorkflow, Signal: streakSignal, ID: id.String()}
}

// endStreak ends the webhook's streak, if it has one, after the commit.
func endStreak(c *change.Change, hook *db.Webhook) {
	if hook.ConsecutiveFailures > 0 {
		c.After(StreakEnded(hook.ID))
	}
}

// SweepStreaks finds streaks that are long enough to disable their webhook, but whose signal was lost.
func (s *Service) SweepStreaks() jobs.Sweep {
	return jobs.Sweep{Ask: jobs.NoRuns, Rows: s.overdueStreaks}
}

const overdueStreaksSQL = `
SELECT id FROM webhooks WHERE enabled AND consecutive_failures >= $1 AND consecutive_failures > 0 AND id > $2::uuid ORDER BY id LIMIT $3`

func (s *Service) overdueStreaks(ctx context.Context, _ time.Duration, after jobs.Overdue, limit int) ([]jobs.Overdue, error) {
	return postgres.CollectAcross(ctx, s.store.Across("look for failing webhooks"), overdueStreaksSQL, func(row pgx.CollectableRow) (o jobs.Overdue, err error) {
		var id publicid.Webhook
		err = row.Scan(&id)
		o.Request, o.Row = StreakGrew(id), id.UUID()
		return o, err
	}, MaxConsecutiveFailures, after.Row.String(), limit)
}
