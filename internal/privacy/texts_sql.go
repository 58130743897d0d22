package privacy

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// noteTexts notes the ids of the posts and comments that a contact and its guest have written, for
// an erasure. It also notes the guest's id, because the author of a deleted comment is only in its
// event. It leaves out posts of another contact: contacts with the same address share their guest.
func noteTexts(ctx context.Context, tx *db.Tx, request publicid.SubjectRequest, of *db.Contact) error {
	var hash []byte
	if of.EmailHash != nil {
		hash = *of.EmailHash
	}
	for _, statement := range []string{
		`INSERT INTO subject_records (id, organization_id, request_id, kind, item_id)
SELECT gen_random_uuid(), $1, $4, 'post', id FROM posts WHERE organization_id = $1
  AND (contact_id = $2 OR contact_id IS NULL AND author_user_id IN (` + guestsSQL + `))`,
		`INSERT INTO subject_records (id, organization_id, request_id, kind, item_id)
SELECT gen_random_uuid(), $1, $4, 'comment', id FROM comments c WHERE organization_id = $1
  AND (contact_id = $2 OR email_hash = $3 AND contact_id IS NULL
    AND NOT EXISTS (SELECT FROM users u WHERE u.organization_id = $1 AND u.id = c.author_user_id AND u.kind = 'member'))`,
		`INSERT INTO subject_records (id, organization_id, request_id, kind, item_id)
SELECT gen_random_uuid(), $1, $4, 'author', guest.id FROM (` + guestsSQL + `) guest`,
	} {
		if _, err := postgres.ExecTx(ctx, tx, statement, of.ID, hash, request); err != nil {
			return errors.Wrap(err, "note the person's posts and comments")
		}
	}
	return nil
}

// guestsSQL selects the guest users of a contact, without those of other contacts.
const guestsSQL = `SELECT u.id FROM users u WHERE u.organization_id = $1 AND u.kind = 'guest' AND (u.contact_id = $2
  OR u.email_hash = $3 AND NOT EXISTS (SELECT FROM contacts o WHERE o.organization_id = $1 AND o.id = u.contact_id))`

// guestsOf returns the guest users of a contact.
func guestsOf(ctx context.Context, tx *db.Tx, of *db.Contact) ([]publicid.User, error) {
	var hash []byte
	if of.EmailHash != nil {
		hash = *of.EmailHash
	}
	return oneColumn[publicid.User](ctx, tx, guestsSQL, of.ID, hash)
}

// firstNoted returns the smallest id that a request has noted, or the zero id if there is none. Ids
// begin with their time of creation, so it belongs to the oldest item.
func firstNoted(ctx context.Context, tx *db.Tx, request publicid.SubjectRequest) (first uuid.UUID, err error) {
	found, err := oneColumn[uuid.UUID](ctx, tx, `SELECT item_id FROM subject_records WHERE organization_id = $1 AND request_id = $2 ORDER BY item_id LIMIT 1`, request)
	if len(found) > 0 {
		first = found[0]
	}
	return first, err
}

func oneColumn[T any](ctx context.Context, tx *db.Tx, query string, args ...any) (all []T, err error) {
	if err := postgres.QueryTx(ctx, tx, postgres.All(&all, pgx.RowTo[T]), query, args...); err != nil {
		return nil, errors.Wrap(err, "ask for a data-subject request")
	}
	return all, nil
}
