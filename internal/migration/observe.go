package migration

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Observed is what a migration did when it ran.
type Observed struct {
	File
	// Effects are those of each statement.
	Effects [][]Effect
	// taken is what a program of the release before misses or can't write any more,
	// and broken what nobody can write.
	taken, broken []string
	// again is why a file without transaction can't be run a second time.
	again error
}

// compact is an object of a list in a list.
var compact = regexp.MustCompile(`\{\s*"table"[^}]*\}`)

// Observe applies migrations to an empty database, which it keeps for itself, and looks
// at what each statement does.
func Observe(ctx context.Context, url string, files []File) ([]Observed, error) {
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

// EffectsOf are what Observe saw of locks, reads and writes.
func EffectsOf(all []Observed) Effects {
	e := Effects{}
	for _, o := range all {
		e[o.Name] = o.Effects
	}
	return e
}

// observer has a connection that runs the statements, one that looks at it, and one that
// has it wait.
type observer struct{ runs, looks, waits *pgx.Conn }

func (o *observer) file(ctx context.Context, f File) (Observed, error) {
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

// again runs a file a second time, as after a process that died at its end.
func (o *observer) again(ctx context.Context, f File) error {
	for _, statement := range f.Statements {
		if _, err := o.runs.Exec(ctx, statement); err != nil {
			return errors.Wrap(err, firstLine(statement))
		}
	}
	return nil
}

// table is one that was there before a migration.
type table struct {
	name  string
	node  uint32 // the file that holds its rows; another one after it was written anew
	scans int64  // how often all of it was read
}

// tables are those that there are, by their id.
func (o *observer) tables(ctx context.Context) (map[uint32]table, error) {
	// The database counts what a connection read some time later, unless told otherwise.
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

// statement runs one in a transaction of its own, so that it shows its locks even where a
// statement before it has taken the same.
func (o *observer) statement(ctx context.Context, f File, statement string, old map[uint32]table) ([]Effect, error) {
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
	effects := []Effect{}
	for id := range old {
		e := Effect{Table: before[id].name, Lock: held[id]}
		if now, there := after[id]; there {
			e.Reads, e.Rewrites = now.scans > before[id].scans, now.node != before[id].node
		}
		if e.Lock != "" && (e.Reads || strength(e.Lock) >= strength(writing)) {
			effects = append(effects, e)
		}
	}
	slices.SortFunc(effects, func(a, b Effect) int { return strings.Compare(a.Table, b.Table) })
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

// concurrently is in statements that can't run in a transaction. They wait for those
// that have written to the table.
var concurrently = regexp.MustCompile(`(?i)\bCONCURRENTLY\b`)

// behindAnother runs a statement while somebody has every table in use, so that it can be
// looked at while it waits.
func (o *observer) behindAnother(ctx context.Context, statement string, tables map[uint32]table) (held map[uint32]string, err error) {
	other, err := o.waits.Begin(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "begin what is waited for")
	}
	defer func() { _ = other.Rollback(context.WithoutCancel(ctx)) }()
	for _, t := range tables {
		if _, err := other.Exec(ctx, `LOCK TABLE `+pgx.Identifier{t.name}.Sanitize()+` IN ROW EXCLUSIVE MODE`); err != nil {
			return nil, errors.Wrap(err, "take what is waited for")
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
			return nil, err // or there was nothing to do
		case <-time.After(time.Millisecond): // between two looks
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

// held are the strongest locks of the connection that runs, by table.
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
		lock := LockName(mode)
		if strength(lock) < 0 {
			return errors.Errorf("%s is no lock of tables that we know", mode)
		}
		if was, ok := found[id]; !ok || strength(lock) > strength(was) {
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

// LockName is a lock's name in the documentation, from the one that pg_locks has for it.
func LockName(mode string) string {
	return strings.ToUpper(strings.Join(words.FindAllString(strings.TrimSuffix(mode, "Lock"), -1), " "))
}

func firstLine(statement string) string {
	line, _, more := strings.Cut(statement, "\n")
	if more {
		return fmt.Sprintf("%s …", line)
	}
	return line
}
