// Package authoring helps to write migrations. Diff writes a migration from the changes in ent/schema.
// Observe runs the files on a real Postgres, and determines the locks of their statements, the tables
// that they read or rewrite, and the changes that break programs of the release before. Problems has
// the rules. The service does not link this package.
package authoring

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"earshot/internal/migrate"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Observed is the observed behaviour of a migration.
type Observed struct {
	migrate.File
	// Effects has the effects of each statement.
	Effects [][]migrate.Effect
	// taken and broken list the changes that break a program of the release before (see compare).
	taken, broken []string
	// again is the error of a second run of a file without transaction.
	again error
}

// Observe applies migrations to an empty database and records the effects of each statement. No
// other program may use the database.
func Observe(ctx context.Context, url string, files []migrate.File) ([]Observed, error) {
	o := &observer{}
	for _, c := range []**pgx.Conn{&o.runs, &o.looks, &o.waits} {
		var err error
		if *c, err = pgx.Connect(ctx, url); err != nil {
			return nil, errors.Wrap(err, "connect to the empty database")
		}
		defer func() { _ = (*c).Close(context.WithoutCancel(ctx)) }()
	}
	all := make([]Observed, len(files))
	for i, f := range files {
		seen, err := o.file(ctx, f)
		if err != nil {
			return nil, errors.Wrapf(err, "run %s", f.Name)
		}
		all[i] = seen
	}
	return all, nil
}

// EffectsOf returns the observed effects.
func EffectsOf(all []Observed) migrate.Effects {
	e := migrate.Effects{}
	for _, o := range all {
		e[o.Name] = o.Effects
	}
	return e
}

// observer has three connections: runs executes the statements, looks inspects them, and waits
// holds locks that make them wait.
type observer struct{ runs, looks, waits *pgx.Conn }

func (o *observer) file(ctx context.Context, f migrate.File) (Observed, error) {
	seen := Observed{File: f}
	before, err := o.columns(ctx)
	if err != nil {
		return seen, err
	}
	old, err := o.tables(ctx)
	if err != nil {
		return seen, err
	}
	for _, statement := range f.Statements {
		effects, err := o.statement(ctx, f, statement, old)
		if err != nil {
			return seen, errors.Wrapf(err, "observe %s", firstLine(statement))
		}
		seen.Effects = append(seen.Effects, effects)
	}
	after, err := o.columns(ctx)
	if err != nil {
		return seen, err
	}
	seen.taken, seen.broken = compare(before, after)
	if !f.Transaction {
		seen.again = o.again(ctx, f)
	}
	return seen, nil
}

// again runs a file a second time, as after a crash at its end.
func (o *observer) again(ctx context.Context, f migrate.File) error {
	for _, statement := range f.Statements {
		if _, err := o.runs.Exec(ctx, statement); err != nil {
			return errors.Wrap(err, firstLine(statement))
		}
	}
	return nil
}

// table is a table that existed before a migration.
type table struct {
	name  string
	node  uint32 // the file with its rows; a rewrite creates another one
	scans int64  // the number of full reads
}

// tables returns the existing tables by their id.
func (o *observer) tables(ctx context.Context) (map[uint32]table, error) {
	// The statistics of a connection's reads are otherwise updated with a delay.
	if _, err := o.runs.Exec(ctx, `SELECT pg_stat_force_next_flush()`); err != nil {
		return nil, errors.Wrap(err, "have the reads counted")
	}
	rows, err := o.looks.Query(ctx, `
		SELECT oid, relname, coalesce(pg_relation_filenode(oid), 0), pg_stat_get_numscans(oid)
		FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema::regnamespace`)
	if err != nil {
		return nil, errors.Wrap(err, "list the tables")
	}
	found := map[uint32]table{}
	var id uint32
	var t table
	_, err = pgx.ForEachRow(rows, []any{&id, &t.name, &t.node, &t.scans}, func() error {
		found[id] = t
		return nil
	})
	if err != nil {
		return nil, errors.Wrap(err, "list the tables")
	}
	return found, nil
}

// statement runs one statement in a separate transaction. Its locks are then visible even if an
// earlier statement took the same ones.
func (o *observer) statement(ctx context.Context, f migrate.File, statement string, old map[uint32]table) ([]migrate.Effect, error) {
	before, err := o.tables(ctx)
	if err != nil {
		return nil, err
	}
	run := o.inTransaction
	if !f.Transaction && concurrently.MatchString(statement) {
		run = o.behindAnother
	}
	held, err := run(ctx, statement, before)
	if err != nil {
		return nil, err
	}
	after, err := o.tables(ctx)
	if err != nil {
		return nil, err
	}
	effects := []migrate.Effect{}
	for id := range old {
		e := migrate.Effect{Table: before[id].name, Lock: held[id]}
		if now, there := after[id]; there {
			e.Reads, e.Rewrites = now.scans > before[id].scans, now.node != before[id].node
		}
		if e.Lock != "" && (e.Reads || migrate.LockStrength(e.Lock) >= migrate.LockStrength(migrate.Writing)) {
			effects = append(effects, e)
		}
	}
	slices.SortFunc(effects, func(a, b migrate.Effect) int { return strings.Compare(a.Table, b.Table) })
	return effects, nil
}

func (o *observer) inTransaction(ctx context.Context, statement string, _ map[uint32]table) (map[uint32]string, error) {
	var held map[uint32]string
	err := pgx.BeginFunc(ctx, o.runs, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
		var err error
		held, err = o.held(ctx)
		return err
	})
	return held, err
}

// concurrently matches statements that can't run in a transaction. They wait for transactions that
// have written to the table.
var concurrently = regexp.MustCompile(`(?i)\bCONCURRENTLY\b`)

// behindAnother runs a statement while another transaction locks every table. The statement then
// waits, and its locks can be read.
func (o *observer) behindAnother(ctx context.Context, statement string, tables map[uint32]table) (held map[uint32]string, err error) {
	other, err := o.waits.Begin(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "begin the transaction that the statement waits for")
	}
	defer func() { _ = other.Rollback(context.WithoutCancel(ctx)) }()
	for _, t := range tables {
		if _, err := other.Exec(ctx, `LOCK TABLE `+pgx.Identifier{t.name}.Sanitize()+` IN ROW EXCLUSIVE MODE`); err != nil {
			return nil, errors.Wrap(err, "lock a table that the statement waits for")
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := o.runs.Exec(ctx, statement)
		ended <- err
	}()
	for {
		select {
		case err := <-ended:
			return nil, err // without an error, there was nothing to do
		case <-time.After(time.Millisecond): // pause between two looks
		}
		var waits bool
		err := o.looks.QueryRow(ctx, `SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = $1`,
			o.runs.PgConn().PID()).Scan(&waits)
		if err != nil {
			return nil, errors.Wrap(err, "look whether it waits")
		}
		if !waits {
			continue
		}
		if held, err = o.held(ctx); err != nil {
			return nil, err
		}
		if err := other.Rollback(ctx); err != nil {
			return nil, errors.Wrap(err, "let it go on")
		}
		return held, <-ended
	}
}

// held returns the strongest locks of the connection that runs, by table.
func (o *observer) held(ctx context.Context) (map[uint32]string, error) {
	rows, err := o.looks.Query(ctx, `
		SELECT relation, mode FROM pg_locks WHERE pid = $1 AND granted AND locktype = 'relation'`, o.runs.PgConn().PID())
	if err != nil {
		return nil, errors.Wrap(err, "read the locks")
	}
	found := map[uint32]string{}
	var (
		id   uint32
		mode string
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &mode}, func() error {
		lock := lockName(mode)
		if migrate.LockStrength(lock) < 0 {
			return errors.Errorf("%s is no lock of tables that we know", mode)
		}
		if was, ok := found[id]; !ok || migrate.LockStrength(lock) > migrate.LockStrength(was) {
			found[id] = lock
		}
		return nil
	})
	if err != nil {
		return nil, errors.Wrap(err, "read the locks")
	}
	return found, nil
}

var words = regexp.MustCompile(`[A-Z][a-z]+`)

// lockName converts a lock's name from pg_locks to its name in the documentation.
func lockName(mode string) string {
	return strings.ToUpper(strings.Join(words.FindAllString(strings.TrimSuffix(mode, "Lock"), -1), " "))
}

func firstLine(statement string) string {
	line, _, more := strings.Cut(statement, "\n")
	if more {
		return fmt.Sprintf("%s …", line)
	}
	return line
}
