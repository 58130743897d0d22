package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Lists that are kept in step with go by the number of the transaction that changed a row last
// (changed_in), and by id. Moments wouldn't do: a row's is taken before its commit, so it may
// appear behind a place that a reader has passed. Numbers are taken before the commit, too, but
// the database says which transactions are still under way: what has a number below the oldest
// of these is committed or never will be, and a reader looks at that only.

// ChangePlace is where a row stands in the order of changes.
type ChangePlace struct {
	In int64
	ID uuid.UUID
}

// Changes says how far the changes may be read.
type Changes struct {
	// Settled is a number below which no transaction is under way. It may be less than before,
	// when a transaction of another database ended just now; what was settled stays so.
	Settled int64
	// Next is above every number that was given. It only grows.
	Next int64
	// Restored is the number that a copy has to have begun at, at least. Where the database was
	// restored, those that began before know changes that aren't there.
	Restored int64
	// Durable is a number below which none is given again, should Postgres crash now.
	Durable int64
}

// A cluster numbers the transactions of all its databases together. One in another database
// changes nothing here, so it holds up nobody. The sessions are read after the snapshot was
// taken: a transaction that has ended since counts as under way.
//
// Postgres recovers with the number behind all that its log on disk has. A transaction that wrote
// nothing there, because it was rolled back, or whose commit nobody waited for, leaves its number to
// another one after a crash. So what is settled now may be under way then, unless it is below what
// the last checkpoint noted down, or a number that a committed row has.
//
// A standby doesn't tell which transactions are under way, so it refuses as it refuses writes.
const changesSQL = `
SELECT base + coalesce((
  SELECT min(under_way::text::bigint) FROM pg_snapshot_xip(snapshot) under_way WHERE NOT EXISTS (
    SELECT FROM pg_stat_activity WHERE backend_xid = under_way::xid AND datname <> current_database()
  )
), next), base + next, restored, greatest(restored, removed + 1, base + noted)
FROM transaction_numbers, pg_current_snapshot() snapshot, LATERAL (SELECT pg_snapshot_xmax(snapshot)::text::bigint AS next) n,
  (SELECT (split_part(next_xid, ':', 1)::bigint << 32) + split_part(next_xid, ':', 2)::bigint AS noted FROM pg_control_checkpoint()) checkpoint
WHERE NOT pg_is_in_recovery() OR pg_current_xact_id() IS NULL`

// Changes asks the database. It has to be asked before the rows are read.
func (s *Store) Changes(ctx context.Context) (c Changes, err error) {
	if err := s.pool.QueryRow(ctx, changesSQL).Scan(&c.Settled, &c.Next, &c.Restored, &c.Durable); err != nil {
		return c, errors.Wrap(err, "ask which changes are settled")
	}
	return c, nil
}

const (
	changedInColumn = "changed_in"
	idColumn        = "id"
)

// ChangedBetween are the rows behind a place with numbers below another.
func ChangedBetween[P ~func(*sql.Selector)](after ChangePlace, before int64) P {
	return func(s *sql.Selector) {
		s.Where(sql.CompositeGT([]string{s.C(changedInColumn), s.C(idColumn)}, after.In, after.ID)).
			Where(sql.LT(s.C(changedInColumn), before))
	}
}

// ByChange is the order of changes.
func ByChange(table string) string {
	return table + "." + changedInColumn + ", " + table + "." + idColumn
}

// Tombstone is what is left of something that was deleted.
type Tombstone struct {
	ID        uuid.UUID
	DeletedAt time.Time
	In        int64
}

// Deletions are the deleted ones of a list: SQL that reads id, deleted_at and changed_in, and
// what it is a list of, as the first argument.
type Deletions struct{ from string }

// The lists. Posts and comments that are deleted stay, but for the posts of a board that is
// deleted; of the others a trigger leaves tombstones.
var (
	DeletedPosts = Deletions{`SELECT id, deleted_at, changed_in FROM posts
WHERE organization_id = $1 AND deleted_at IS NOT NULL @range UNION ALL ` + tombstonesOf("post")}
	DeletedBoardPosts = Deletions{`SELECT id, deleted_at, changed_in FROM posts
WHERE organization_id = $1 AND board_id = $2 AND deleted_at IS NOT NULL @range`}
	DeletedComments = Deletions{`SELECT id, deleted_at, changed_in FROM comments
WHERE organization_id = $1 AND post_id = $2 AND deleted_at IS NOT NULL @range`}
	DeletedContacts = Deletions{tombstonesOf("contact")}
	DeletedEntries  = Deletions{tombstonesOf("changelog_entry") + ` AND board_id = $2`}
)

func tombstonesOf(kind string) string {
	return fmt.Sprintf(`SELECT id, deleted_at, changed_in FROM tombstones WHERE organization_id = $1 AND kind = '%s' @range`, kind)
}

// DeletedBetween says which deletions to read: behind a place, up to another and including it,
// not before a moment.
type DeletedBetween struct {
	// Of is what the list is of, where it isn't the organization.
	Of          *uuid.UUID
	After, UpTo ChangePlace
	Since       time.Time
	Limit       int
}

// The number of the latest tombstone that the retention took away comes with those that are left,
// of the same moment: asked for before, it wouldn't know of those that went in between.
const tombstonesSQL = `
SELECT removed, d.* FROM transaction_numbers LEFT JOIN (%s ORDER BY changed_in, id LIMIT $%d) d ON true ORDER BY d.changed_in, d.id`

// Deleted reads deletions in the organization of the context, in the order of changes. Removed is
// the number of the latest one that isn't known any more, of any organization.
func (s *Store) Deleted(ctx context.Context, of Deletions, p DeletedBetween) (found []Tombstone, removed int64, err error) {
	organization, err := organizationOf(ctx, "tombstones")
	if err != nil {
		return nil, 0, err
	}
	args := []any{pgx.QueryExecModeCacheDescribe, organization.UUID()}
	if p.Of != nil {
		args = append(args, *p.Of)
	}
	n := len(args) - 1
	within := fmt.Sprintf(`AND (changed_in, id) > ($%d, $%d) AND (changed_in, id) <= ($%d, $%d) AND deleted_at >= $%d`, n+1, n+2, n+3, n+4, n+5)
	args = append(args, p.After.In, p.After.ID, p.UpTo.In, p.UpTo.ID, p.Since, p.Limit)
	rows, err := s.pool.Query(ctx, fmt.Sprintf(tombstonesSQL, strings.ReplaceAll(of.from, "@range", within), n+6), args...)
	if err != nil {
		return nil, 0, errors.Wrap(err, "look for what was deleted")
	}
	var id *uuid.UUID // nil where there is none
	var at *time.Time
	var in *int64
	_, err = pgx.ForEachRow(rows, []any{&removed, &id, &at, &in}, func() error {
		if id != nil {
			found = append(found, Tombstone{*id, *at, *in})
		}
		return nil
	})
	if err != nil {
		return nil, 0, errors.Wrap(err, "look for what was deleted")
	}
	return found, removed, nil
}

// Of 500 at a time, as the retention removes everything.
const oldTombstonesSQL = `
WITH gone AS (
  DELETE FROM tombstones WHERE id IN (
    SELECT id FROM tombstones WHERE deleted_at < $1 ORDER BY deleted_at LIMIT 500 FOR UPDATE SKIP LOCKED
  ) RETURNING changed_in
), noted AS (
  UPDATE transaction_numbers SET removed = greatest(removed, (SELECT max(changed_in) FROM gone)) WHERE EXISTS (SELECT FROM gone)
)
SELECT count(*) FROM gone`

// RemoveTombstones removes one page of tombstones, of all organizations, that are older than a
// moment, and returns how many. Whole says that there may be more.
func (s *Store) RemoveTombstones(ctx context.Context, olderThan time.Time) (removed int, whole bool, err error) {
	err = again(func() error { return s.pool.QueryRow(ctx, oldTombstonesSQL, olderThan).Scan(&removed) })
	if err != nil {
		return 0, false, errors.Wrap(err, "remove tombstones")
	}
	return removed, removed == 500, nil
}

// NumberChangesAnew is for a database that may have been restored into another cluster, which
// numbers its transactions anew, before anybody uses it. What operators do after a restore into
// the same one is in docs/backup.md.
func (s *Store) NumberChangesAnew(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, "SELECT number_changes_anew(if_in_another_cluster => true)"); err != nil {
		return errors.Wrap(err, "number the changes behind those from before the restore")
	}
	return nil
}
