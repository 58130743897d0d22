package page

import (
	"context"
	"fmt"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/internal/postgres"
)

// Lists for synchronization are ordered by changed_in, the number of the transaction that last
// changed the row, and then by id. A timestamp doesn't work: it is taken before the commit, so a
// row can appear behind a position that a reader has already passed.
//
// A transaction number is also assigned before the commit, but Postgres can list the running
// transactions. Every number below the oldest running one is committed or rolled back. Readers only
// read up to that number.

// ChangePlace is the position of a row in the order of changes.
type ChangePlace struct {
	In int64
	ID uuid.UUID
}

// ChangeLimits describes up to which number the changes can be read.
type ChangeLimits struct {
	// Settled is a number below which no transaction is running. It can be lower than before when a
	// transaction of another database has just ended. Numbers that were settled stay settled.
	Settled int64
	// Next is above every assigned number. It only grows.
	Next int64
	// Restored is the lowest number at which a valid copy can have begun. An older copy may contain
	// changes that a restore of the database has removed.
	Restored int64
	// Durable is a number below which none is assigned again, even if Postgres crashes now.
	Durable int64
}

// A cluster numbers the transactions of all its databases together. A transaction in another
// database changes nothing here, so it is ignored. The sessions are read after the snapshot: a
// transaction that has ended in between counts as running.
//
// After a crash, Postgres continues with the number behind the last one in its log on disk. The log
// may lack the number of a transaction that was rolled back or that committed asynchronously.
// Another transaction then gets the same number. A settled number may therefore be running after a
// crash, unless it is below the number of the last checkpoint or a committed row has it.
//
// A standby can't list the running transactions of its primary. The query fails there with the same
// error as a write.
const changesSQL = `
SELECT base + coalesce((
  SELECT min(under_way::text::bigint) FROM pg_snapshot_xip(snapshot) under_way WHERE NOT EXISTS (
    SELECT FROM pg_stat_activity WHERE backend_xid = under_way::xid AND datname <> current_database()
  )
), next), base + next, restored, greatest(restored, removed + 1, base + noted)
FROM transaction_numbers, pg_current_snapshot() snapshot, LATERAL (SELECT pg_snapshot_xmax(snapshot)::text::bigint AS next) n,
  (SELECT (split_part(next_xid, ':', 1)::bigint << 32) + split_part(next_xid, ':', 2)::bigint AS noted FROM pg_control_checkpoint()) checkpoint
WHERE NOT pg_is_in_recovery() OR pg_current_xact_id() IS NULL`

// ReadChanges reads the current limits from the database. Call it before reading the rows.
func ReadChanges(ctx context.Context, s *postgres.DB) (c ChangeLimits, err error) {
	if err := s.Across("transaction numbers belong to the whole database").QueryRow(ctx, changesSQL).Scan(&c.Settled, &c.Next, &c.Restored, &c.Durable); err != nil {
		return c, errors.Wrap(err, "ask which changes are settled")
	}
	return c, nil
}

const (
	changedInColumn = "changed_in"
	idColumn        = "id"
)

// ChangedBetween selects the rows after a position whose numbers are below before.
func ChangedBetween[P ~func(*sql.Selector)](after ChangePlace, before int64) P {
	return func(s *sql.Selector) {
		s.Where(sql.CompositeGT([]string{s.C(changedInColumn), s.C(idColumn)}, after.In, after.ID)).
			Where(sql.LT(s.C(changedInColumn), before))
	}
}

// ByChange is the ORDER BY clause for the order of changes.
func ByChange(table string) string {
	return table + "." + changedInColumn + ", " + table + "." + idColumn
}

// Tombstone is the record of a deleted row.
type Tombstone struct {
	ID        uuid.UUID
	DeletedAt time.Time
	In        int64
}

// deletions is the SQL that selects the deleted rows of a list: id, deleted_at and changed_in. Its
// first argument is the organization; $2, if it is used, is the parent of the list.
type deletions struct{ from string }

// Deletions of each list. Deleted posts and comments keep their rows, except for the posts of a
// deleted board. For all other rows, a trigger writes tombstones.
var (
	DeletedPosts = deletions{`SELECT id, deleted_at, changed_in FROM posts
WHERE organization_id = $1 AND deleted_at IS NOT NULL @range UNION ALL ` + tombstonesOf("post")}
	DeletedBoardPosts = deletions{`SELECT id, deleted_at, changed_in FROM posts
WHERE organization_id = $1 AND board_id = $2 AND deleted_at IS NOT NULL @range`}
	DeletedComments = deletions{`SELECT id, deleted_at, changed_in FROM comments
WHERE organization_id = $1 AND post_id = $2 AND deleted_at IS NOT NULL @range`}
	DeletedContacts = deletions{tombstonesOf("contact")}
	DeletedEntries  = deletions{tombstonesOf("changelog_entry") + ` AND board_id = $2`}
)

func tombstonesOf(kind string) string {
	return fmt.Sprintf(`SELECT id, deleted_at, changed_in FROM tombstones WHERE organization_id = $1 AND kind = '%s' @range`, kind)
}

// deletedBetween selects deletions after a position and up to another one, inclusive. It leaves out
// deletions before Since.
type deletedBetween struct {
	// Of is the parent of the list, for example a board. It is nil for lists of the organization.
	Of          *uuid.UUID
	After, UpTo ChangePlace
	Since       time.Time
	Limit       int
}

// The number of the latest tombstone that the retention removed is read in the same statement. An
// earlier, separate read would miss tombstones that are removed in between.
const tombstonesSQL = `
SELECT removed, d.* FROM transaction_numbers LEFT JOIN (%s ORDER BY changed_in, id LIMIT $%d) d ON true ORDER BY d.changed_in, d.id`

// ReadTombstones reads deletions in the organization of the context, in the order of changes. Removed is
// the number of the latest tombstone, of any organization, that the retention has removed.
func ReadTombstones(ctx context.Context, s *postgres.DB, of deletions, p deletedBetween) (found []Tombstone, removed int64, err error) {
	args := []any{pgx.QueryExecModeCacheDescribe}
	if p.Of != nil {
		args = append(args, *p.Of)
	}
	n := len(args) // with the organization, and without the mode
	within := fmt.Sprintf(`AND (changed_in, id) > ($%d, $%d) AND (changed_in, id) <= ($%d, $%d) AND deleted_at >= $%d`, n+1, n+2, n+3, n+4, n+5)
	args = append(args, p.After.In, p.After.ID, p.UpTo.In, p.UpTo.ID, p.Since, p.Limit)
	rows, err := s.Query(ctx, fmt.Sprintf(tombstonesSQL, strings.ReplaceAll(of.from, "@range", within), n+6), args...)
	if err != nil {
		return nil, 0, errors.Wrap(err, "look for tombstones")
	}
	var id *uuid.UUID // nil without a tombstone
	var at *time.Time
	var in *int64
	_, err = pgx.ForEachRow(rows, []any{&removed, &id, &at, &in}, func() error {
		if id != nil {
			found = append(found, Tombstone{*id, *at, *in})
		}
		return nil
	})
	if err != nil {
		return nil, 0, errors.Wrap(err, "look for tombstones")
	}
	return found, removed, nil
}
