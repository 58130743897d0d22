package migrate

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/internal/postgres"
)

// NumberChangesAnew prepares a database that may have been restored into another cluster, which
// numbers its transactions differently. Call it before the database is used. For a restore into the
// same cluster, operators follow docs/backup.md.
func NumberChangesAnew(ctx context.Context, s *postgres.DB) error {
	if _, err := s.Across("migrations").Exec(ctx, "SELECT number_changes_anew(if_in_another_cluster => true)"); err != nil {
		return errors.Wrap(err, "number the changes behind those from before the restore")
	}
	return nil
}
