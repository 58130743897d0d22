package webhooks

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// rotation is the reason why the statements of this file touch rows of all organizations.
const rotation = "the operator rotates the sealing keys"

// This file reads and replaces sealed values of all organizations, for an operator who rotates keys.
// It never opens them.

// sealed holds the sealed values of a webhook's row. Former is the previous secret while a rotation
// of the webhook's secret goes on. In a row from before URLs were sealed, URLSealed is empty and URL
// is complete.
type sealed struct {
	Webhook                   publicid.Webhook
	Secret, Former, URLSealed []byte
	URL                       string
}

// formerKeyID is the name of the key with which a former secret is sealed.
const formerKeyID = `encode(substring(former_secret_sealed FROM 2 FOR get_byte(former_secret_sealed, 0)), 'escape')`

// notSealedWith selects the rows that a key rotation still has to seal again.
const notSealedWith = `(secret_key_id IS DISTINCT FROM $1 OR url_key_id IS DISTINCT FROM $1 OR ` + formerKeyID + ` <> $1)`

const staleSecretsSQL = `
SELECT id, secret_sealed, former_secret_sealed, url_sealed, url FROM webhooks
WHERE ` + notSealedWith + ` AND id > $2::uuid
ORDER BY id LIMIT $3`

// staleSecrets returns rows with a value that is not sealed with the key, in the order of their ids.
// The page begins after last, the last row of the page before. The zero id is for the first page.
func staleSecrets(ctx context.Context, s *postgres.DB, key string, last publicid.Webhook, limit int) ([]sealed, error) {
	rows, err := s.Across(rotation).Query(ctx, staleSecretsSQL, key, last.UUID().String(), limit)
	if err != nil {
		return nil, errors.Wrap(err, "find webhooks that are sealed with another key")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r sealed, err error) {
		return r, row.Scan(&r.Webhook, &r.Secret, &r.Former, &r.URLSealed, &r.URL)
	})
	if err != nil {
		return nil, errors.Wrap(err, "read webhooks that are sealed with another key")
	}
	return found, nil
}

const resealSQL = `
UPDATE webhooks SET secret_sealed = $6, former_secret_sealed = $7, url_sealed = $8, url = $9
WHERE id = $1 AND secret_sealed = $2 AND former_secret_sealed IS NOT DISTINCT FROM $3 AND url_sealed IS NOT DISTINCT FROM $4 AND url = $5`

// reseal replaces the old values with the new ones, in one short transaction. It skips a row that no
// longer has the old values. It returns how many rows it changed. Both lists are of the same
// webhooks, in the order of their ids.
func reseal(ctx context.Context, s *postgres.DB, old, fresh []sealed) (int, error) {
	changed := 0
	err := postgres.Again(func() error {
		changed = 0
		var batch pgx.Batch
		for i, o := range old {
			n := fresh[i]
			batch.Queue(resealSQL, o.Webhook.UUID().String(), o.Secret, o.Former, o.URLSealed, o.URL, n.Secret, n.Former, n.URLSealed, n.URL).
				Exec(func(tag pgconn.CommandTag) error { changed += int(tag.RowsAffected()); return nil })
		}
		return s.Across(rotation).SendBatch(ctx, &batch)
	})
	if err != nil {
		return 0, errors.Wrap(err, "seal anew")
	}
	return changed, nil
}

const forgetFormerSQL = `
UPDATE webhooks SET former_secret_sealed = NULL, former_secret_until = NULL WHERE id IN (
  SELECT id FROM webhooks WHERE former_secret_until <= now() FOR NO KEY UPDATE SKIP LOCKED)`

// ForgetFormerSecrets removes the former secrets of webhooks whose rotation is over.
func ForgetFormerSecrets(ctx context.Context, s *postgres.DB) error {
	if _, err := s.Across(rotation).Exec(ctx, forgetFormerSQL); err != nil {
		return errors.Wrap(err, "forget secrets that were replaced")
	}
	return nil
}

const countStaleSQL = `SELECT count(*) FROM webhooks WHERE ` + notSealedWith

// countStaleSecrets counts the rows with a value that is not sealed with the key.
func countStaleSecrets(ctx context.Context, s *postgres.DB, key string) (int, error) {
	var n int
	if err := s.Across(rotation).QueryRow(ctx, countStaleSQL, key).Scan(&n); err != nil {
		return 0, errors.Wrap(err, "count webhooks that are sealed with another key")
	}
	return n, nil
}

// KeyUse counts the webhooks, widget secrets and submissions with a value that is sealed with a key.
// A webhook whose URL is not sealed yet counts for the key "".
type KeyUse struct {
	Key                                  string
	Webhooks, WidgetSecrets, Submissions int
}

const keyUseSQL = `
SELECT key, count(DISTINCT webhook), count(DISTINCT widget), count(submission) FROM (
  SELECT id AS webhook, NULL::uuid AS widget, NULL::uuid AS submission, secret_key_id AS key FROM webhooks
  UNION ALL SELECT id, NULL, NULL, coalesce(url_key_id, '') FROM webhooks
  UNION ALL SELECT id, NULL, NULL, ` + formerKeyID + ` FROM webhooks WHERE former_secret_sealed IS NOT NULL
  UNION ALL SELECT NULL, id, NULL, encode(substring(secret_sealed FROM 2 FOR get_byte(secret_sealed, 0)), 'escape') FROM widget_secrets
  UNION ALL SELECT NULL, NULL, id, encode(substring(person_sealed FROM 2 FOR get_byte(person_sealed, 0)), 'escape')
    FROM submissions WHERE person_sealed IS NOT NULL
) used GROUP BY key ORDER BY key`

// KeyUses returns the keys that the database needs, in the order of their names.
func KeyUses(ctx context.Context, s *postgres.DB) ([]KeyUse, error) {
	rows, err := s.Across(rotation).Query(ctx, keyUseSQL)
	if err != nil {
		return nil, errors.Wrap(err, "count webhooks by key")
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[KeyUse])
	if err != nil {
		return nil, errors.Wrap(err, "read the webhooks by key")
	}
	return found, nil
}
