package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"earshot/e2e/faults/receiver"
	earshot "earshot/sdk/go"
	"earshot/workflows"
)

// expiredRows fills more than two batches of the retention.
const expiredRows = 1200

// recover makes the dead receiver healthy, enables its webhook and requests a recovery of the
// failed deliveries.
func (r *run) recover(ctx context.Context) error {
	err := await(ctx, "the webhook to be disabled and its deliveries to end", func() bool {
		n, err := r.number(ctx, `SELECT count(*) FROM webhooks h WHERE h.id = $1 AND (h.enabled OR EXISTS (
			SELECT FROM deliveries d WHERE d.webhook_id = h.id AND d.status = 'pending'))`, r.fails.id)
		return err == nil && n == 0
	})
	if err != nil {
		return err
	}
	r.behave(r.fails, receiver.Healthy)
	webhooks, id := r.broken.api.Webhooks, r.fails.id.String()
	if _, err := webhooks.Update(ctx, id, earshot.UpdateWebhookRequest{Enabled: earshot.Ptr(true)}); err != nil {
		return errors.Wrap(err, "enable the webhook")
	}
	if _, err := webhooks.Recover(ctx, id, earshot.RecoverWebhookRequest{Since: time.Now().Add(-time.Hour)}); err != nil {
		return errors.Wrap(err, "ask for a recovery")
	}
	return nil
}

// awaitMails waits until the admin of each tenant has one e-mail for each disabled webhook. A
// repeated e-mail has the same file name, so it counts once. The webhook that was enabled again
// counts, too.
func (r *run) awaitMails(ctx context.Context) error {
	return await(ctx, "one mail for each webhook that was disabled", func() bool {
		disabled, err := r.number(ctx, `SELECT count(*) FROM webhooks WHERE disabled_reason = 'failures'`)
		mails, failed := filepath.Glob(filepath.Join(r.dir, "mail", "*.eml"))
		mails = slices.DeleteFunc(mails, func(file string) bool { return strings.HasPrefix(filepath.Base(file), "ixn_") }) // E-mails to end-users.
		return err == nil && failed == nil && len(mails) == disabled+1
	})
}

// schedule makes a changelog entry that is published at the given time.
func (t *tenant) schedule(ctx context.Context, at time.Time) (written, error) {
	made, err := t.api.Changelog.Create(ctx, t.board, earshot.CreateChangelogEntryRequest{Title: "News", PublishedAt: earshot.Some(at)})
	if err != nil {
		return written{}, errors.Wrap(err, "schedule an entry")
	}
	return written{made.ID, published}, nil
}

// expiredSQL makes rows that are two months old. The retention reads the age from the first 48 bits
// of the ids.
const expiredSQL = `
WITH made AS (
  SELECT overlay(overlay(gen_random_uuid()::text PLACING stamp FROM 1 FOR 13) PLACING '7' FROM 15 FOR 1)::uuid AS event,
    overlay(overlay(gen_random_uuid()::text PLACING stamp FROM 1 FOR 13) PLACING '7' FROM 15 FOR 1)::uuid AS delivery
  FROM generate_series(1, $2), (
    SELECT overlay(lpad(to_hex((extract(epoch FROM now() - interval '60 days') * 1000)::bigint), 12, '0')
      PLACING '-' FROM 9 FOR 0) AS stamp) s
), hook AS (
  SELECT id, organization_id FROM webhooks WHERE id = $1
), events AS (
  INSERT INTO events (id, organization_id, created_at, type, payload)
  SELECT event, organization_id, now() - interval '60 days', 'contact.created', '{}' FROM made, hook RETURNING id
)
INSERT INTO deliveries (id, organization_id, created_at, webhook_id, event_id, event_type, status, failed_at)
SELECT delivery, organization_id, now() - interval '60 days', hook.id, event, 'contact.created', 'failed', now()
FROM made, hook WHERE (SELECT count(*) FROM events) > 0`

// expire makes expired rows and triggers the retention.
func (r *run) expire(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, r.stack.direct)
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, expiredSQL, r.fails.id, expiredRows); err != nil {
		return errors.Wrap(err, "make rows that are expired")
	}
	c, err := temporal.DialContext(ctx, temporal.Options{
		HostPort: r.stack.temporal.Address(), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return errors.Wrap(err, "reach Temporal")
	}
	defer c.Close()
	retention := c.ScheduleClient().GetHandle(ctx, workflows.RetentionSchedule)
	if err := retention.Trigger(ctx, temporal.ScheduleTriggerOptions{}); err != nil {
		return errors.Wrap(err, "begin the retention")
	}
	return nil
}
