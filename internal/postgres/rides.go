package postgres

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"math/bits"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"earshot/ent/db"
)

// InTxWithRides is InTx for a change with statements that cost no round trip of their own. Those of
// atBegin are sent with BEGIN and the first statement of fn. Those of the function that fn returns are
// sent with COMMIT. Both functions may be nil. begin sends BEGIN with the statements of atBegin, unless
// they were sent before; it is for a fn that needs their results before its first statement.
func (d *DB) InTxWithRides(
	ctx context.Context, atBegin func(*pgx.Batch),
	fn func(tx *db.Tx, begin func(context.Context) error) (atCommit func(*pgx.Batch), err error),
) error {
	return Again(func() error {
		own := &riddenTx{ctx: ctx}
		own.waiting.Queue("BEGIN")
		if atBegin != nil {
			atBegin(&own.waiting)
		}
		return d.runTx(context.WithValue(ctx, riddenTxKey{}, own), func(tx *db.Tx) (err error) {
			own.atCommit, err = fn(tx, own.begin)
			return err
		})
	})
}

// eachRowKey is the context key of the function for the rows of look.
type eachRowKey struct{}

func look(ctx context.Context, tx *db.Tx, read func(pgx.Rows) error, query string, args ...any) error {
	// pgx also passes the rows of a query that failed. They only have the error.
	unlessFailed := func(rows pgx.Rows) error {
		if err := rows.Err(); err != nil {
			return err
		}
		return read(rows)
	}
	ran, err := tx.ExecContext(context.WithValue(ctx, eachRowKey{}, unlessFailed), query, args...)
	if err == nil && ran != looked {
		err = errors.New("the transaction is not one of InTx")
	}
	return err
}

// looked is the result of a query of look.
var looked stdsql.Result = driver.ResultNoRows

// withCommitKey marks the context of a statement that may ride with COMMIT.
type withCommitKey struct{}

// WithCommit marks an insert or an update whose result the change does not need, also one through Ent. It
// is sent with the next statement that has no mark, which is usually the commit. Its error is then the
// error of that statement.
func WithCommit(ctx context.Context) context.Context {
	return context.WithValue(ctx, withCommitKey{}, true)
}

// InsertWithCommit inserts rows in their order by statements that are marked by WithCommit. Create is the
// CreateBulk of an entity.
func InsertWithCommit[Row, Entity any, Bulk interface {
	Save(ctx context.Context) ([]*Entity, error)
}](ctx context.Context, create func(rows ...Row) Bulk, rows []Row) ([]*Entity, error) {
	made := make([]*Entity, 0, len(rows))
	for len(rows) > 0 {
		n := insertRows(len(rows))
		next, err := create(rows[:n]...).Save(WithCommit(ctx))
		if err != nil {
			return nil, err
		}
		made, rows = append(made, next...), rows[n:]
	}
	return made, nil
}

// insertRows returns the number of rows of the next statement, of left rows that are still to insert: 16, 8,
// 4, 2 or 1. Each number of rows is a statement of its own, and every connection parses, plans and keeps it.
func insertRows(left int) int {
	const most = 16 // the statements for every number up to 64 took 13 MB in each connection, up to 16 0.9 MB
	return 1 << (bits.Len(uint(min(left, most))) - 1)
}

// ridden is Ent's driver with transactions whose BEGIN and COMMIT share round trips with other statements.
type ridden struct{ *entsql.Driver }

// riddenTxKey is the context key of a transaction for Tx. Ent passes nothing else to its driver.
type riddenTxKey struct{}

// Tx begins a transaction. The context tells whether it is one of InTx or InTxWithRides.
func (d ridden) Tx(ctx context.Context) (dialect.Tx, error) {
	own, ok := ctx.Value(riddenTxKey{}).(*riddenTx)
	if !ok {
		return d.Driver.Tx(ctx)
	}
	conn, err := d.DB().Conn(ctx)
	if err != nil {
		return nil, err
	}
	own.Conn, own.conn = entsql.Conn{ExecQuerier: conn}, conn
	return own, nil
}

// riddenTx is a transaction of InTx or InTxWithRides.
type riddenTx struct {
	entsql.Conn
	conn *stdsql.Conn
	// waiting are statements whose result nobody needs yet, in their order: BEGIN with those of atBegin,
	// and those that were marked by WithCommit.
	waiting pgx.Batch
	begun   bool
	// failed is the error of a batch. BEGIN may have been in it, so nothing more is sent.
	failed   error
	atCommit func(*pgx.Batch)
	// ctx is for the commit, because Ent passes none.
	ctx  context.Context
	over bool
}

// send sends statements together on the transaction's connection.
func (t *riddenTx) send(ctx context.Context, statements *pgx.Batch) error {
	t.begun = true
	t.failed = t.conn.Raw(func(conn any) error {
		return conn.(*stdlib.Conn).Conn().SendBatch(ctx, statements).Close()
	})
	return t.failed
}

// begin is for fn of InTxWithRides.
func (t *riddenTx) begin(ctx context.Context) error {
	if t.begun {
		return nil
	}
	return t.sendWaiting(ctx)
}

// wait adds a marked statement to those that wait. It returns false for other statements, after it has
// sent those that wait.
func (t *riddenTx) wait(ctx context.Context, query string, args []any) (waits bool, err error) {
	if ctx.Value(withCommitKey{}) != nil {
		t.waiting.Queue(query, args...)
		return true, t.failed
	}
	return false, t.sendWaiting(ctx)
}

func (t *riddenTx) sendWaiting(ctx context.Context) error {
	if t.failed != nil || t.waiting.Len() == 0 {
		return t.failed
	}
	waiting := t.waiting
	t.waiting = pgx.Batch{}
	return t.send(ctx, &waiting)
}

// Exec is for Ent's updates and deletions. A statement that waits affects an unknown number of rows, and
// reports none.
func (t *riddenTx) Exec(ctx context.Context, query string, args, into any) error {
	waits, err := t.wait(ctx, query, args.([]any))
	if waits || err != nil {
		return err
	}
	return t.Conn.Exec(ctx, query, args, into)
}

// Query is for Ent's queries and inserts. A statement that waits returns no rows.
func (t *riddenTx) Query(ctx context.Context, query string, args, into any) error {
	waits, err := t.wait(ctx, query, args.([]any))
	if err != nil {
		return err
	}
	if waits {
		*into.(*entsql.Rows) = entsql.Rows{ColumnScanner: noRows{}}
		return nil
	}
	return t.Conn.Query(ctx, query, args, into)
}

// ExecContext is for hand-written statements, and for the queries of look.
func (t *riddenTx) ExecContext(ctx context.Context, query string, args ...any) (stdsql.Result, error) {
	if read, ok := ctx.Value(eachRowKey{}).(func(pgx.Rows) error); ok {
		t.waiting.Queue(query, args...).Query(read)
		return looked, t.sendWaiting(ctx)
	}
	waits, err := t.wait(ctx, query, args)
	if waits || err != nil {
		return driver.RowsAffected(0), err
	}
	return t.Conn.ExecContext(ctx, query, args...)
}

// QueryContext is for hand-written queries that do not use look.
func (t *riddenTx) QueryContext(ctx context.Context, query string, args ...any) (*stdsql.Rows, error) {
	if err := t.sendWaiting(ctx); err != nil {
		return nil, err
	}
	return t.Conn.QueryContext(ctx, query, args...)
}

// noRows is the result of an insert that waits.
type noRows struct{}

func (noRows) Close() error                               { return nil }
func (noRows) ColumnTypes() ([]*stdsql.ColumnType, error) { return nil, nil }
func (noRows) Columns() ([]string, error)                 { return nil, nil }
func (noRows) Err() error                                 { return nil }
func (noRows) Next() bool                                 { return false }
func (noRows) NextResultSet() bool                        { return false }
func (noRows) Scan(...any) error                          { return stdsql.ErrNoRows }

// Commit writes the last rows and commits. Ent calls it.
func (t *riddenTx) Commit() error {
	if t.over {
		return stdsql.ErrTxDone
	}
	if t.failed != nil {
		return t.failed
	}
	statements := &t.waiting
	if t.atCommit != nil {
		t.atCommit(statements)
	}
	statements.Queue("COMMIT").Exec(func(did pgconn.CommandTag) error {
		if did.String() == "ROLLBACK" { // a statement had failed before
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
	err := t.send(t.ctx, statements)
	if err != nil {
		_ = t.Rollback()
		return err
	}
	t.over = true
	return t.conn.Close()
}

// Rollback undoes the transaction, unless it is over. A connection that doesn't take it any
// more is thrown away by the pool, and the server does the same.
func (t *riddenTx) Rollback() error {
	if t.over {
		return stdsql.ErrTxDone
	}
	t.over = true
	if !t.begun {
		return t.conn.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), ConnectionTimeout)
	defer cancel()
	_, err := t.conn.ExecContext(ctx, "ROLLBACK")
	if closed := t.conn.Close(); err == nil {
		err = closed
	}
	return err
}
