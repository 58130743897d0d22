package store

import (
	"context"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/publicid"
)

const seeSQL = `
UPDATE contacts SET last_seen_at = greatest(last_seen_at, $3)
WHERE organization_id = $1 AND external_user_id = $2`

// The columns by name: a schema that is ahead may have more.
var seenSQL = " RETURNING " + strings.Join(contact.Columns, ", ")

// SeeContact notes that an organization's contact was seen and returns it. It
// returns nil, and notes nothing, when there is no such contact or the caller can
// tell it a trait, by its column, that is still null. It is one statement, because identifying a
// contact that is known is what integrators do most; Ent would take a transaction
// for it. Time only advances, whatever the clock of another process says.
func (s *Store) SeeContact(ctx context.Context, of publicid.Organization, externalUserID string, at time.Time, told []string) (*db.Contact, error) {
	query := seeSQL
	for _, column := range told {
		query += " AND " + column + " IS NOT NULL"
	}
	rows, err := s.sql.QueryContext(ctx, query+seenSQL, of, externalUserID, at)
	if err != nil {
		return nil, errors.Wrap(err, "note that a contact was seen")
	}
	defer func() { _ = rows.Close() }()
	var found []*db.Contact
	if err := sql.ScanSlice(rows, &found); err != nil {
		return nil, errors.Wrap(err, "read the contact")
	}
	if err := rows.Err(); err != nil {
		return nil, errors.Wrap(err, "read the contact")
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}
