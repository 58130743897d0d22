package check

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

const (
	tableNamesSQL = `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname`
	hashTablesSQL = `SELECT table_name FROM information_schema.columns
WHERE table_schema = 'public' AND column_name = 'email_hash' ORDER BY table_name`
	// Each row is searched as text, so every column counts. Bytes are in hex there.
	textTraceSQL = `INSERT INTO traces SELECT format('%%s rows of %%s have %%L', count(*), %[2]s, t)
FROM %[1]s x, unnest($1::text[], $2::text[]) u (t, h) WHERE strpos(lower(x::text), t) > 0 OR strpos(x::text, h) > 0 GROUP BY t`
	hashTraceSQL = `INSERT INTO traces SELECT format('%%s rows of %%s have the hash of an address', count(*), %[2]s)
FROM %[1]s WHERE email_hash = ANY ($1) HAVING count(*) > 0`
)

// loadTraces searches each row of the database for traces of the erased persons.
func loadTraces(ctx context.Context, tx pgx.Tx, of Erased) error {
	if _, err := tx.Exec(ctx, `INSERT INTO erased SELECT unnest($1::text[])`, of.Subjects); err != nil {
		return errors.Wrap(err, "copy the erased subjects")
	}
	texts, inHex := make([]string, len(of.Texts)), make([]string, len(of.Texts))
	for i, text := range of.Texts {
		texts[i], inHex[i] = strings.ToLower(text), hex.EncodeToString([]byte(text))
	}
	for names, look := range map[string]struct {
		sql  string
		args []any
	}{tableNamesSQL: {textTraceSQL, []any{texts, inHex}}, hashTablesSQL: {hashTraceSQL, []any{of.Hashes}}} {
		rows, err := tx.Query(ctx, names)
		if err != nil {
			return errors.Wrap(err, "list the tables")
		}
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return errors.Wrap(err, "list the tables")
		}
		for _, table := range tables {
			sql := fmt.Sprintf(look.sql, pgx.Identifier{"public", table}.Sanitize(), "'"+table+"'")
			if _, err := tx.Exec(ctx, sql, look.args...); err != nil {
				return errors.Wrapf(err, "look for the erased in %s", table)
			}
		}
	}
	return nil
}
