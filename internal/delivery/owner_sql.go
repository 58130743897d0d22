package delivery

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

const ownersSQL = `SELECT id, organization_id FROM webhooks WHERE id = ANY($1)`

// OwnersOf returns the organizations of the given webhooks. It leaves out webhooks that don't
// exist.
func OwnersOf(ctx context.Context, s *postgres.DB, webhooks []publicid.Webhook) (map[publicid.Webhook]publicid.Organization, error) {
	rows, err := s.Across(ofAll).Query(ctx, ownersSQL, Texts(webhooks))
	if err != nil {
		return nil, errors.Wrap(err, "look for the organizations of webhooks")
	}
	owners := map[publicid.Webhook]publicid.Organization{}
	var webhook publicid.Webhook
	var organization publicid.Organization
	_, err = pgx.ForEachRow(rows, []any{&webhook, &organization}, func() error {
		owners[webhook] = organization
		return nil
	})
	if err != nil {
		return nil, errors.Wrap(err, "read the organizations of webhooks")
	}
	return owners, nil
}
