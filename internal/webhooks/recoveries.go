package webhooks

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/recovery"
	"earshot/internal/change"
	"earshot/internal/jobs"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// NewRecovery is the window of a recovery. If Until is nil, the window ends now. If EventType is
// nil, it covers every event to which the webhook subscribes.
type NewRecovery struct {
	Since     time.Time
	Until     *time.Time
	EventType *string
}

// check refuses an empty window. If the window ends in the future, check cuts it off at the current
// time.
func (in *NewRecovery) check(at time.Time) error {
	var bad problem.Fields
	bad.Moment("since", &in.Since)
	bad.Moment("until", in.Until)
	delivered(&bad, in.EventType)
	in.Since = *postgres.AtPrecision(&in.Since)
	switch in.Until = postgres.AtPrecision(in.Until); {
	case in.Until != nil && !in.Since.Before(*in.Until):
		bad.Add("until", "after", "must be later than since")
	case !in.Since.Before(at):
		bad.Add("since", "past", "must be in the past")
	}
	if in.Until == nil || in.Until.After(at) {
		in.Until = &at
	}
	return bad.Err()
}

// RecoverWebhook starts a recovery. It replays every delivery of the webhook that was created in
// the window, failed for good and was never replayed. The recovery's row is its outbox, from which
// the Dispatcher continues. RecoverWebhook returns problem.Conflict if the webhook is disabled,
// doesn't subscribe to the requested event, or already has a running recovery.
func (s *Service) RecoverWebhook(
	ctx context.Context, id publicid.Webhook, in NewRecovery, q change.Request[*db.Recovery],
) (*db.Recovery, error) {
	at := postgres.Now()
	if err := in.check(at); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Recovery, error) {
		hook, err := lockWebhook(ctx, c, id, postgres.NoKeyUpdate) // so that the second of two requests sees the recovery of the first
		if err != nil {
			return nil, err
		}
		if err := mustTake(hook, in.EventType); err != nil {
			return nil, err
		}
		if err := mustNotRecover(ctx, c, id); err != nil {
			return nil, err
		}
		made, err := c.Recovery.Create().SetWebhookID(id).SetSince(in.Since).SetUntil(*in.Until).
			SetNillableEventType(in.EventType).SetCreatedAt(at).Save(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "insert the recovery")
		}
		c.Audit("recoverWebhook", id)
		c.After(RecoveryRun(made.ID, id, made.OrganizationID))
		return made, nil
	})
}

// RecoveryRun starts the run of a recovery.
func RecoveryRun(id publicid.Recovery, webhook publicid.Webhook, of publicid.Organization) jobs.Request {
	return jobs.Request{
		Workflow: "recover_webhook", ID: id.String(), Argument: "recovery", Summary: "replays what failed at a webhook",
		Organization: of, Webhook: webhook,
	}
}

// mustNotRecover returns problem.Conflict if the webhook has a running recovery.
func mustNotRecover(ctx context.Context, c *change.Change, id publicid.Webhook) error {
	running, err := c.Recovery.Query().Where(recovery.WebhookID(id), recovery.StatusEQ(recovery.StatusRunning)).Only(ctx)
	switch {
	case db.IsNotFound(err):
		return nil
	case err != nil:
		return errors.Wrap(err, "look for a recovery that runs")
	}
	return problem.RecoveryRunning.Problem().With("recoveryId", running.ID.String())
}

// Recovery loads one recovery of a webhook.
func (s *Service) Recovery(ctx context.Context, of publicid.Webhook, id publicid.Recovery) (*db.Recovery, error) {
	if _, err := s.loadWebhook(ctx, of); err != nil {
		return nil, err
	}
	found, err := s.store.Client().Recovery.Query().Where(recovery.ID(id), recovery.WebhookID(of)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("recovery")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the recovery")
	}
	return found, nil
}

// Recoveries lists a webhook's recoveries, newest first.
func (s *Service) Recoveries(ctx context.Context, of publicid.Webhook, q page.Query) (page.Page[*db.Recovery], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("recoveries", of)
	last := page.After[publicid.Recovery](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Recovery]{}, err
	}
	if _, err := s.loadWebhook(ctx, of); err != nil {
		return page.Page[*db.Recovery]{}, err
	}
	query := s.store.Lists().Recovery.Query().
		Where(recovery.WebhookID(of)).Order(db.Desc(recovery.FieldID)).Limit(limit + 1)
	if last != nil {
		query.Where(recovery.IDLT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.Recovery]{}, errors.Wrap(err, "list recoveries")
	}
	return page.Cut(list, rows, limit, page.ByID(func(r *db.Recovery) string { return r.ID.String() })), nil
}
