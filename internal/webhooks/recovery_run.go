package webhooks

import (
	"context"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/ent/db/predicate"
	"earshot/ent/db/recovery"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/failpoint"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// recoveryPage is how many deliveries a transaction replays: enough to make its
// cost small, and few enough that a change of the webhook, which waits for it,
// doesn't notice.
const recoveryPage = 50

// RecoveryProgress tells how far a recovery is. The status is the row's, and empty
// where the recovery is gone with its webhook.
type RecoveryProgress struct {
	Status        string
	StoppedReason string
	// Since and Until are the window.
	Since, Until time.Time
	// Total is 0 until it is counted.
	Total, Replayed int
}

func progressOf(r *db.Recovery) RecoveryProgress {
	p := RecoveryProgress{Status: string(r.Status), Since: r.Since, Until: r.Until, Replayed: r.Replayed}
	if r.Total != nil {
		p.Total = *r.Total
	}
	if r.StoppedReason != nil {
		p.StoppedReason = *r.StoppedReason
	}
	return p
}

// CountRecovery counts what a recovery is going to replay, unless that was done
// before.
func (s *Service) CountRecovery(ctx context.Context, id publicid.Recovery) (RecoveryProgress, error) {
	return s.onRecovery(ctx, id, func(ctx context.Context, c *change.Change, hook *db.Webhook, r *db.Recovery) (*db.Recovery, error) {
		if r.Total != nil {
			return r, nil
		}
		n, err := c.Delivery.Query().Where(recoverable(hook, r)...).Count(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "count what failed")
		}
		return c.Recovery.UpdateOne(r).SetTotal(n).Save(ctx)
	})
}

// RecoverNext replays the next deliveries of a recovery, at most recoveryPage of
// them. The row goes on in the same transaction, so nothing is replayed twice when
// it is asked again after a kill. It completes the recovery when nothing is left, and
// stops it when the webhook is disabled or doesn't subscribe to the event any more.
func (s *Service) RecoverNext(ctx context.Context, id publicid.Recovery) (RecoveryProgress, error) {
	return s.onRecovery(ctx, id, recoverNext)
}

func recoverNext(ctx context.Context, c *change.Change, hook *db.Webhook, r *db.Recovery) (*db.Recovery, error) {
	at := store.Now()
	update := c.Recovery.UpdateOne(r)
	if reason := rejection(hook, r.EventType); reason != "" {
		return update.SetStatus(recovery.StatusStopped).SetStoppedReason(reason).SetEndedAt(at).Save(ctx)
	}
	failed, err := c.Delivery.Query().Where(recoverable(hook, r)...).
		Order(db.Asc(delivery.FieldID)).Limit(recoveryPage).
		Select(delivery.FieldID, delivery.FieldEventID, delivery.FieldEventType).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for what failed")
	}
	if len(failed) < recoveryPage {
		update.SetStatus(recovery.StatusCompleted).SetEndedAt(at)
	}
	if len(failed) > 0 {
		rows := make([]*db.DeliveryCreate, len(failed))
		for i, d := range failed {
			rows[i] = c.Send(hook, publicid.NewDelivery(), d.EventID, d.EventType, at).SetReplayOf(d.ID)
		}
		if err := c.Delivery.CreateBulk(rows...).Exec(ctx); err != nil {
			return nil, errors.Wrap(err, "insert the replays")
		}
		failpoint.Hit(failpoint.RecoveryPage)
		update.SetPosition(failed[len(failed)-1].ID).AddReplayed(len(failed))
	}
	return update.Save(ctx)
}

// recoverable are the deliveries that a recovery has still to replay.
func recoverable(hook *db.Webhook, r *db.Recovery) []predicate.Delivery {
	wanted := append(slices.Clone(hook.Events), string(event.WebhookTest))
	if r.EventType != nil {
		wanted = []string{*r.EventType}
	}
	// The id carries its moment, too, as in the list: with it only the window is read.
	from := publicid.DeliveryAt(r.Since.Add(-time.Minute))
	if r.Position != nil {
		from = *r.Position
	}
	return []predicate.Delivery{
		delivery.WebhookID(hook.ID), delivery.StatusEQ(delivery.StatusFailed), delivery.EventTypeIn(wanted...),
		delivery.CreatedAtGTE(r.Since), delivery.CreatedAtLT(r.Until),
		delivery.IDGT(from), delivery.IDLT(publicid.DeliveryAt(r.Until.Add(time.Minute))),
		notReplayed(from),
	}
}

// notReplayed leaves out what was replayed, whatever became of that. It looks at the
// replays of what comes after from: a join would read the older ones for each page.
func notReplayed(from publicid.Delivery) predicate.Delivery {
	return func(s *sql.Selector) {
		replay := sql.Table(delivery.Table).As("replay")
		s.Where(sql.NotExists(sql.Select(replay.C(delivery.FieldID)).From(replay).Where(sql.And(
			sql.ColumnsEQ(replay.C(delivery.FieldReplayOf), s.C(delivery.FieldID)),
			sql.GT(replay.C(delivery.FieldReplayOf), from),
		))))
	}
}

// onRecovery runs fn for the service on a recovery that is running, with its row locked,
// so that one at a time goes on with it, and whatever the billing state: what was accepted
// happens. One that has ended stays as it is.
func (s *Service) onRecovery(ctx context.Context, id publicid.Recovery,
	fn func(ctx context.Context, c *change.Change, hook *db.Webhook, r *db.Recovery) (*db.Recovery, error),
) (p RecoveryProgress, err error) {
	all := store.System(ctx, "a recovery belongs to the service once it is accepted")
	found, err := s.store.Client().Recovery.Query().Where(recovery.ID(id)).Only(all)
	if db.IsNotFound(err) {
		return p, nil
	}
	if err != nil {
		return p, errors.Wrap(err, "load the recovery")
	}
	err = s.changes.RunForService(ctx, found.OrganizationID, func(ctx context.Context, c *change.Change) error {
		p = RecoveryProgress{}
		hook, err := lockWebhook(ctx, c, found.WebhookID, store.KeyShare)
		if problem.Is(err, problem.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := c.Recovery.Query().Where(recovery.ID(id)).ForShare(store.NoKeyUpdate).Only(ctx)
		if err != nil {
			return errors.Wrap(err, "lock the recovery")
		}
		if r.Status == recovery.StatusRunning {
			if r, err = fn(ctx, c, hook, r); err != nil {
				return errors.Wrap(err, "go on with the recovery")
			}
		}
		p = progressOf(r)
		return nil
	})
	return p, err
}
