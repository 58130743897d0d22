package privacy

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/postgres"
)

// endBackfill removes a contact's address from all backfills of the organization. It waits for a
// page that is processing the address.
func endBackfill(ctx context.Context, tx *db.Tx, of *db.Contact) error {
	if of.EmailHash == nil {
		return nil
	}
	_, err := postgres.ExecTx(ctx, tx, `DELETE FROM backfill_addresses WHERE organization_id = $1 AND email_hash = $2`, *of.EmailHash)
	if err != nil {
		return errors.Wrap(err, "remove the address from backfills")
	}
	return nil
}
