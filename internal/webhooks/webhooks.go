package webhooks

import (
	"context"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/organization"
	entwebhook "earshot/ent/db/webhook"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/webhook"
)

// WithSecret is a webhook with its new signing secret.
type WithSecret struct {
	*db.Webhook
	Secret string
}

// RegisterWebhook makes an enabled webhook and returns its signing secret, which is never shown
// again. A URL and events are required. It returns problem.PlanLimit on the free plan, or if the
// organization has reached the cap.
func (s *Service) RegisterWebhook(ctx context.Context, in WebhookInput, q change.Request[*WithSecret]) (*WithSecret, error) {
	if err := s.checkNewWebhook(in); err != nil {
		return nil, err
	}
	secret := webhook.NewSecret()
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*WithSecret, error) {
		limit := s.settings.Cap
		if c.Caller.Organization.Plan == organization.PlanFree {
			limit = 0
		}
		// Two registrations at once must not both take the last place.
		if err := c.LockOrganization(ctx); err != nil {
			return nil, err
		}
		n, err := c.Webhook.Query().Count(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "count webhooks")
		}
		if n >= limit {
			return nil, problem.OverPlan("webhook", limit, n)
		}
		id, at := publicid.NewWebhook(), postgres.Now()
		c.Audit("createWebhook", id)
		made, err := c.Webhook.Create().
			SetID(id).SetURL(change.OriginOf(*in.URL)).SetURLSealed(s.sealURL(id, *in.URL)).SetEvents(distinct(*in.Events)).
			SetNillableDescription(change.Value(in.Description)).SetMetadata(in.Metadata).
			SetNillableMaxPerSecond(change.Value(in.MaxPerSecond)).
			SetSecretSealed(s.secrets.Seal(id.String(), secret)).
			SetCreatedAt(at).SetUpdatedAt(at).
			Save(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "insert the webhook")
		}
		made.URL = *in.URL
		return &WithSecret{Webhook: made, Secret: secret}, nil
	})
}

// Webhooks lists the organization's webhooks, oldest first. It returns all of them unless the
// caller asks for a page.
func (s *Service) Webhooks(ctx context.Context, q page.Query) (page.Page[*db.Webhook], error) {
	var bad problem.Fields
	limit := q.Whole(&bad, s.settings.Cap)
	list := page.ListOf("webhooks")
	last := page.After[publicid.Webhook](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Webhook]{}, err
	}
	query := s.store.Client().Webhook.Query().Order(db.Asc(entwebhook.FieldID)).Limit(limit + 1)
	if last != nil {
		query.Where(entwebhook.IDGT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.Webhook]{}, errors.Wrap(err, "list webhooks")
	}
	for _, w := range rows {
		if err := s.openURL(w); err != nil {
			return page.Page[*db.Webhook]{}, err
		}
	}
	return page.Cut(list, rows, limit, page.ByID(func(w *db.Webhook) string { return w.ID.String() })), nil
}

// Webhook loads one webhook.
func (s *Service) Webhook(ctx context.Context, id publicid.Webhook) (*db.Webhook, error) {
	found, err := s.loadWebhook(ctx, id)
	if err != nil {
		return nil, err
	}
	return found, s.openURL(found)
}

// loadWebhook is Webhook with only the origin of the URL.
func (s *Service) loadWebhook(ctx context.Context, id publicid.Webhook) (*db.Webhook, error) {
	found, err := s.store.Client().Webhook.Get(ctx, id)
	if db.IsNotFound(err) {
		return nil, problem.Missing("webhook")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the webhook")
	}
	return found, nil
}

// UpdateWebhook changes a webhook. Pending deliveries use the new URL from their next attempt on,
// and end there if the webhook is disabled. A change that only disables the webhook works in every
// billing state, even if the URL can't be opened. In that case only the URL's origin is returned.
func (s *Service) UpdateWebhook(
	ctx context.Context, id publicid.Webhook, in WebhookInput, q change.Request[*db.Webhook],
) (*db.Webhook, error) {
	if err := s.checkWebhook(in); err != nil {
		return nil, err
	}
	perform := change.Run[*db.Webhook]
	if in.onlyDisables() {
		perform = change.RunUnpaid[*db.Webhook]
	}
	return perform(ctx, s.changes, q, func(c *change.Change) (*db.Webhook, error) {
		old, err := c.Webhook.Query().Where(entwebhook.ID(id)).ForUpdate().Only(ctx)
		if db.IsNotFound(err) {
			return nil, problem.Missing("webhook")
		}
		if err != nil {
			return nil, errors.Wrap(err, "load the webhook")
		}
		unreadable := s.openURL(old)
		if unreadable != nil && in.URL == nil && !in.onlyDisables() {
			return nil, unreadable // a new URL repairs it, and the old one isn't needed for that
		}
		if err := q.CheckIfMatch(c, old); err != nil {
			return nil, err
		}
		at, whole := postgres.Now(), old.URL
		update := c.Webhook.UpdateOne(old)
		if in.URL != nil && (*in.URL != whole || unreadable != nil) {
			whole = *in.URL
			update.SetURL(change.OriginOf(whole)).SetURLSealed(s.sealURL(id, whole))
		}
		if in.Events != nil && !slices.Equal(distinct(*in.Events), old.Events) {
			update.SetEvents(distinct(*in.Events))
		}
		in.describe(update, old)
		in.throttle(update, old)
		if in.Enabled != nil && *in.Enabled != old.Enabled {
			setEnabled(update, *in.Enabled, at)
			endStreak(c, old)
		}
		if change.Unchanged(update.Mutation()) {
			return old, nil
		}
		c.Audit("updateWebhook", id)
		changed, err := update.SetUpdatedAt(at).Save(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "update the webhook")
		}
		changed.URL = whole
		return changed, nil
	})
}

func setEnabled(update *db.WebhookUpdateOne, enabled bool, at time.Time) {
	update.SetEnabled(enabled)
	if enabled {
		update.ClearDisabledAt().ClearDisabledReason().SetConsecutiveFailures(0)
	} else {
		update.SetDisabledAt(at).SetDisabledReason(entwebhook.DisabledReasonRequested)
	}
}

// DeleteWebhook deletes a webhook and its log. Both are invisible from then on, and the retention
// removes the rows later, page by page. Deliveries in progress end quietly.
func (s *Service) DeleteWebhook(ctx context.Context, id publicid.Webhook, q change.Request[*db.Webhook]) error {
	_, err := change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Webhook, error) {
		// FOR UPDATE waits for transactions that are adding deliveries to the webhook. Their
		// deliveries therefore exist when the retention removes its rows.
		hook, err := c.Webhook.Query().Where(entwebhook.ID(id)).ForUpdate().Only(ctx)
		if db.IsNotFound(err) {
			return nil, problem.Missing("webhook")
		}
		if err != nil {
			return nil, errors.Wrap(err, "load the webhook")
		}
		err = q.CheckIfMatchOf(c, func() (*db.Webhook, error) { return hook, s.openURL(hook) })
		if err != nil {
			return nil, err
		}
		at := postgres.Now()
		err = c.Webhook.UpdateOne(hook).
			SetDeletedAt(at).SetEnabled(false).SetDisabledAt(at).SetDisabledReason(entwebhook.DisabledReasonRequested).
			SetConsecutiveFailures(0).SetUpdatedAt(at).Exec(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "delete the webhook")
		}
		endStreak(c, hook)
		c.Audit("deleteWebhook", id)
		return hook, nil
	})
	return err
}
