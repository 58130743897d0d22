package store

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// This file gives members' votes and comments, of all organizations, the hash of their
// author's e-mail address. New rows have it from their insertion on.

// hashPage is how many rows get their hash in one statement: some milliseconds, for
// which a merge of their posts may wait.
const hashPage = 500

// unhashed is a table whose rows members write: a page of those without the hash, by id,
// and a statement that sets it. A comment that is deleted meanwhile loses its author, and
// then it gets none. An erased member has an id in the place of the address, and gets none
// either.
type unhashed struct{ find, set string }

var unhashedTables = []unhashed{
	{
		`SELECT v.id, u.email FROM votes v JOIN users u ON u.id = v.user_id
WHERE v.email_hash IS NULL AND v.user_id IS NOT NULL AND (u.kind = 'guest' OR u.email LIKE '%@%') AND v.id > $1 ORDER BY v.id LIMIT $2`,
		`UPDATE votes v SET email_hash = h.hash FROM unnest($1::uuid[], $2::bytea[]) h(id, hash)
WHERE v.id = h.id AND v.email_hash IS NULL AND v.user_id IS NOT NULL`,
	},
	{
		`SELECT c.id, u.email FROM comments c JOIN users u ON u.id = c.author_user_id
WHERE c.email_hash IS NULL AND c.author_user_id IS NOT NULL AND (u.kind = 'guest' OR u.email LIKE '%@%') AND c.id > $1 ORDER BY c.id LIMIT $2`,
		`UPDATE comments c SET email_hash = h.hash FROM unnest($1::uuid[], $2::bytea[]) h(id, hash)
WHERE c.id = h.id AND c.email_hash IS NULL AND c.author_user_id IS NOT NULL`,
	},
}

// HashAuthors sets the hash where a vote or comment of a member has none, page by page,
// and returns how many rows it set.
func (s *Store) HashAuthors(ctx context.Context, hash func(email string) []byte) (hashed int, err error) {
	for _, table := range unhashedTables {
		for last := (uuid.UUID{}); ; {
			ids, hashes, err := s.unhashed(ctx, table.find, last, hash)
			if err != nil {
				return hashed, err
			}
			if len(ids) == 0 {
				break
			}
			err = again(func() error {
				done, err := s.pool.Exec(ctx, table.set, ids, hashes)
				hashed += int(done.RowsAffected())
				return err
			})
			if err != nil {
				return hashed, errors.Wrap(err, "set the hashes of authors")
			}
			last = ids[len(ids)-1]
		}
	}
	return hashed, nil
}

// unhashed reads a page of rows, by id, with the hashes of their authors.
func (s *Store) unhashed(
	ctx context.Context, find string, last uuid.UUID, hash func(email string) []byte,
) (ids []uuid.UUID, hashes [][]byte, err error) {
	rows, err := s.pool.Query(ctx, find, last, hashPage)
	if err != nil {
		return nil, nil, errors.Wrap(err, "find authors without a hash")
	}
	var id uuid.UUID
	var email string
	_, err = pgx.ForEachRow(rows, []any{&id, &email}, func() error {
		ids, hashes = append(ids, id), append(hashes, hash(email))
		return nil
	})
	if err != nil {
		return nil, nil, errors.Wrap(err, "read authors without a hash")
	}
	return ids, hashes, nil
}
