package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// There reports which of a list's board, contact and tags exist in an organization.
type filterTargets struct {
	Board bool
	// Contact is also true if the list is not filtered by a contact.
	Contact bool
	// Tags is the number of tags that exist.
	Tags int
}

const thereSQL = `
SELECT EXISTS (SELECT FROM boards WHERE organization_id = $1 AND id = $2),
  $3::uuid IS NULL OR EXISTS (SELECT FROM contacts WHERE organization_id = $1 AND id = $3),
  (SELECT count(*) FROM tags WHERE organization_id = $1 AND id = ANY ($4))`

// lookUpFilter looks for a board, and for the contact and tags of a filter of its posts, in the
// organization of the context.
func lookUpFilter(ctx context.Context, s *postgres.DB, on publicid.Board, contact *publicid.Contact, tags []publicid.Tag) (t filterTargets, err error) {
	if err := s.QueryRow(ctx, []any{&t.Board, &t.Contact, &t.Tags}, thereSQL, on, contact, tags); err != nil {
		return t, errors.Wrap(err, "look for the board, contact and tags of a list")
	}
	return t, nil
}
