package webhooks

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	entwebhook "earshot/ent/db/webhook"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/webhook"
)

// One week. A receiver that can't be changed within a week would in effect have a permanent second
// secret.
const maxSecretOverlap = 7 * 24 * 60 * 60

// RotateSecret gives a webhook a new signing secret and returns it. The secret is never shown
// again. During the overlap, attempts are also signed with the former secret. The overlap is in
// seconds; nil is one day, and 0 ends the former secret immediately. A further rotation also ends
// the former secret.
func (s *Service) RotateSecret(
	ctx context.Context, id publicid.Webhook, overlap *int, q change.Request[*WithSecret],
) (*WithSecret, error) {
	var bad problem.Fields
	lasts := bad.Overlap(overlap, maxSecretOverlap)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	secret := webhook.NewSecret()
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*WithSecret, error) {
		old, err := c.Webhook.Query().Where(entwebhook.ID(id)).ForUpdate(postgres.NoKeyUpdate).Only(ctx)
		if db.IsNotFound(err) {
			return nil, problem.Missing("webhook")
		}
		if err != nil {
			return nil, errors.Wrap(err, "load the webhook")
		}
		if err := s.openURL(old); err != nil {
			return nil, err
		}
		if err := q.CheckIfMatch(c, &WithSecret{Webhook: old}); err != nil {
			return nil, err
		}
		at := postgres.Now()
		update := c.Webhook.UpdateOneID(id).SetSecretSealed(s.secrets.Seal(id.String(), secret)).SetUpdatedAt(at)
		// A former secret whose sealing key is lost can't sign, and every attempt would report it
		// as unreadable.
		_, lost := s.secrets.Open(id.String(), old.SecretSealed)
		if lasts == 0 || lost != nil {
			update.ClearFormerSecretSealed().ClearFormerSecretUntil()
		} else {
			update.SetFormerSecretSealed(old.SecretSealed).SetFormerSecretUntil(at.Add(lasts))
		}
		changed, err := update.Save(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "replace the secret")
		}
		changed.URL = old.URL
		c.Audit("rotateWebhookSecret", id)
		return &WithSecret{Webhook: changed, Secret: secret}, nil
	})
}
