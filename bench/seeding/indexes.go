package seeding

import (
	"context"
	"strings"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// The tables with many rows.
var (
	aboutPeople   = []string{"contacts", "contact_documents"}
	aboutFeedback = []string{"posts", "post_documents", "post_tags", "votes", "comments", "changelog_entries"}
)

// droppable finds the indexes that can be dropped. An index that implements a constraint stays.
const droppable = `
SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
FROM pg_index i
WHERE i.indrelid = ANY ($1::text[]::regclass[]) AND NOT i.indisprimary
  AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
ORDER BY i.indexrelid`

// without drops the tables' indexes, writes the rows, and then builds the indexes again, all in one
// transaction. Building an index over existing rows takes a tenth of the time of inserting into it
// row by row.
func (f *filling) without(ctx context.Context, tables []string, writes ...func(context.Context) error) error {
	type index struct{ Name, Definition string }
	rows, err := f.tx.Query(ctx, droppable, tables)
	if err != nil {
		return errors.Wrap(err, "look for indexes")
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[index])
	if err != nil {
		return errors.Wrap(err, "look for indexes")
	}
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = x.Name
	}
	if _, err := f.tx.Exec(ctx, "DROP INDEX "+strings.Join(names, ", ")); err != nil {
		return errors.Wrap(err, "drop the indexes until the rows are there")
	}
	for _, write := range writes {
		if err := write(ctx); err != nil {
			return err
		}
	}
	for _, x := range all {
		if err := f.step(ctx, "index "+x.Name, func() (int64, error) {
			_, err := f.tx.Exec(ctx, x.Definition)
			return 0, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// postDocuments writes the same rows as the trigger. The seeded posts have neither tags nor
// overlong words, so this simple form of the document is enough.
func (f *filling) postDocuments(ctx context.Context) error {
	return f.step(ctx, "post_documents", func() (int64, error) {
		done, err := f.tx.Exec(ctx, `
INSERT INTO post_documents (post_id, organization_id, title, words)
SELECT id, organization_id, to_tsvector('english', title) || board, to_tsvector('english', title || ' ' || body_text) || board
FROM posts, LATERAL (SELECT array_to_tsvector(ARRAY['board ' || board_id]) AS board) b
WHERE organization_id = $1 AND deleted_at IS NULL`, organizationID)
		return done.RowsAffected(), err
	})
}
