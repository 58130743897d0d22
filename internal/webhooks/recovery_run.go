package webhooks

import (
	"context"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/ent/db/predicate"
	"earshot/ent/db/recovery"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/failpoint"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// recoveryPage is the number of deliveries that one transaction replays. It is large enough to make
// the cost of a transaction small. It is small enough that a change of the webhook, which waits for
// the transaction, has no noticeable delay.
const recoveryPage = 50

// RecoveryProgress is the progress of a recovery. Status is the status of its row. It is empty if
// the recovery was deleted with its webhook.
type RecoveryProgress struct {
	Status        string
	StoppedReason string
	// Since and Until are the window.
	Since, Until time.Time
	// Total is 0 until the deliveries are counted.
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

// CountRecovery counts the deliveries that a recovery is going to replay. It counts them only once.
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

// RecoverNext replays the next deliveries of a recovery, at most recoveryPage. The same transaction
// advances the recovery's position, so a repetition after a kill replays nothing twice. RecoverNext
// completes the recovery when nothing is left. It stops the recovery if the webhook is disabled or
// no longer subscribes to the event.
func (s *Service) RecoverNext(ctx context.Context, id publicid.Recovery) (RecoveryProgress, error) {
	return s.onRecovery(ctx, id, recoverNext)
}

func recoverNext(ctx context.Context, c *change.Change, hook *db.Webhook, r *db.Recovery) (*db.Recovery, error) {
	at := postgres.Now()
	update := c.Recovery.UpdateOne(r)
	if reason := rejection(hook, r.EventType); reason != nil {
		return update.SetStatus(recovery.StatusStopped).SetStoppedReason(reason.Name).SetEndedAt(at).Save(ctx)
	}
	failed, err := c.Delivery.Query().Where(recoverable(hook, r)...).
		Order(db.Asc(delivery.FieldID)).Limit(recoveryPage).
		Select(delivery.FieldID, delivery.FieldEventID, delivery.FieldEventType).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for failed deliveries")
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

// recoverable selects the deliveries that a recovery still has to replay.
func recoverable(hook *db.Webhook, r *db.Recovery) []predicate.Delivery {
	wanted := append(slices.Clone(hook.Events), string(event.WebhookTest))
	if r.EventType != nil {
		wanted = []string{*r.EventType}
	}
	// The id contains its creation time. As in Deliveries, the bounds on the id limit the query to
	// the window.
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

// notReplayed leaves out deliveries that were already replayed, regardless of the result. It looks
// only at replays of deliveries after from: a join would read the older replays for each page.
func notReplayed(from publicid.Delivery) predicate.Delivery {
	return func(s *sql.Selector) {
		replay := sql.Table(delivery.Table).As("replay")
		s.Where(sql.NotExists(sql.Select(replay.C(delivery.FieldID)).From(replay).Where(sql.And(
			sql.ColumnsEQ(replay.C(delivery.FieldReplayOf), s.C(delivery.FieldID)),
			sql.GT(replay.C(delivery.FieldReplayOf), from),
		))))
	}
}

// onRecovery runs fn for the service on a running recovery and returns the progress. It locks the
// recovery's row, so only one caller at a time advances it. It ignores the billing state, because
// the service has accepted the recovery. A recovery that has ended stays as it is.
func (s *Service) onRecovery(ctx context.Context, id publicid.Recovery,
	fn func(ctx context.Context, c *change.Change, hook *db.Webhook, r *db.Recovery) (*db.Recovery, error),
) (p RecoveryProgress, err error) {
	ctx, err = postgres.InOrganizationOf(ctx, s.store, id)
	if db.IsNotFound(err) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	found, err := s.store.Client().Recovery.Query().Where(recovery.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return p, nil
	}
	if err != nil {
		return p, errors.Wrap(err, "load the recovery")
	}
	err = s.changes.RunForService(ctx, found.OrganizationID, func(ctx context.Context, c *change.Change) error {
		p = RecoveryProgress{}
		hook, err := lockWebhook(ctx, c, found.WebhookID, postgres.KeyShare)
		if problem.Is(err, problem.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := c.Recovery.Query().Where(recovery.ID(id)).ForShare(postgres.NoKeyUpdate).Only(ctx)
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

// SweepRecoveries finds recoveries without a run. A recovery whose run an operator terminated is stopped.
func (s *Service) SweepRecoveries() jobs.Sweep {
	return jobs.Sweep{Rows: s.overdueRecoveries}
}

const overdueRecoveriesSQL = `
SELECT r.id, r.webhook_id, r.organization_id, r.created_at FROM recoveries r JOIN webhooks h ON h.id = r.webhook_id
WHERE r.status = 'running' AND h.deleted_at IS NULL AND r.created_at <= now() - make_interval(secs => $1)
  AND (r.created_at, r.id) > ($2, $3::uuid)
ORDER BY r.created_at, r.id LIMIT $4`

func (s *Service) overdueRecoveries(ctx context.Context, grace time.Duration, after jobs.Overdue, limit int) ([]jobs.Overdue, error) {
	return postgres.CollectAcross(ctx, s.store.Across("find running recoveries"), overdueRecoveriesSQL, func(row pgx.CollectableRow) (o jobs.Overdue, err error) {
		var (
			id   publicid.Recovery
			hook publicid.Webhook
			of   publicid.Organization
		)
		err = row.Scan(&id, &hook, &of, &o.At)
		o.Request, o.Row = RecoveryRun(id, hook, of), id.UUID()
		o.Ended = func(ctx context.Context) error { return s.CancelRecovery(ctx, id) }
		return o, err
	}, grace.Seconds(), after.At, after.Row.String(), limit)
}

const cancelRecoverySQL = `
UPDATE recoveries SET status = 'stopped', stopped_reason = 'canceled', ended_at = now()
WHERE organization_id = $1 AND id = $2 AND status = 'running'`

// CancelRecovery stops a recovery, of any organization, whose run an operator ended. A recovery that
// has already ended stays as it is.
func (s *Service) CancelRecovery(ctx context.Context, id publicid.Recovery) error {
	ctx, err := postgres.InOrganizationOf(ctx, s.store, id)
	if db.IsNotFound(err) {
		return nil
	}
	if err == nil {
		_, err = s.store.Exec(ctx, cancelRecoverySQL, id.UUID())
	}
	if err != nil {
		return errors.Wrap(err, "cancel the recovery")
	}
	return nil
}
