package webhooks

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/user"
	entwebhook "earshot/ent/db/webhook"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// MaxConsecutiveFailures of a webhook's deliveries disable it (specification,
// Delivery and retries).
const MaxConsecutiveFailures = 50

// Streak is how many deliveries of a webhook failed for good since the last one
// that succeeded, or since it was enabled.
type Streak struct {
	// Open says that there is something to follow: the webhook is there, enabled,
	// and failing.
	Open         bool
	Organization publicid.Organization
	Failures     int
}

// Streak reads a webhook's streak. It acts for the service, not for a caller.
func (s *Service) Streak(ctx context.Context, id publicid.Webhook) (Streak, error) {
	ctx = store.System(ctx, "a streak is followed by the service")
	found, err := s.store.Client().Webhook.Get(ctx, id)
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

// DisableFailing disables a webhook whose streak has reached the limit, and tells
// whether it did and which admins to tell of it. Run names who asks: asking again
// gets the same answer, whatever happened to the webhook meanwhile.
func (s *Service) DisableFailing(ctx context.Context, id publicid.Webhook, run string) (admins []publicid.User, disabled bool, err error) {
	found, err := s.store.Client().Webhook.Get(store.System(ctx, "a streak is followed by the service"), id)
	if db.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, errors.Wrap(err, "load the webhook")
	}
	err = s.changes.RunForService(ctx, found.OrganizationID, func(ctx context.Context, c *change.Change) error {
		admins, disabled = nil, false
		hook, err := c.Webhook.Query().Where(entwebhook.ID(id)).ForUpdate(store.NoKeyUpdate).Only(ctx)
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
			at := store.Now()
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

// isAdmin is who is told of what goes wrong.
var isAdmin = user.RoleIn(user.RoleOwner, user.RoleAdmin)

// maxMailedAdmins is enough that somebody sees it. Whoever adds members chooses the addresses,
// and the mail server sends to all of them.
const maxMailedAdmins = 50

// adminsOf are an organization's owners and admins, the oldest.
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
