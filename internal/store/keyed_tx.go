package store

import (
	"context"
	stdsql "database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"earshot/ent/db"
	"earshot/internal/publicid"
)

// InTxWithKeys is InTx for requests with idempotency keys, of one organization. fn gets the keys that
// cannot be used, by their ids, with ErrKeyInUse or a RecordedError. It must change nothing for these
// requests, and returns the answers of the others. The keys are locked and looked up with BEGIN, and
// the answers are written with COMMIT, so keys cost no round trip.
func (s *Store) InTxWithKeys(
	ctx context.Context, of publicid.Organization, keys []IdempotencyKey,
	fn func(tx *db.Tx, taken map[[32]byte]error) ([]KeptAnswer, error),
) error {
	if len(keys) == 0 {
		return s.InTx(ctx, func(tx *db.Tx) error {
			_, err := fn(tx, nil)
			return err
		})
	}
	return again(func() error {
		own := &keyedTx{of: of, keys: keys, commit: ctx}
		return s.once(context.WithValue(ctx, keyedTxKey{}, own), func(tx *db.Tx) (err error) {
			own.answers, err = fn(tx, own.look.Taken())
			return err
		})
	})
}

// keyedTransactions is Ent's driver with transactions that have keys.
type keyedTransactions struct{ *entsql.Driver }

// keyedTxKey is the context key of the keys for Tx. Ent passes nothing else to its driver.
type keyedTxKey struct{}

// Tx begins a transaction. The context tells whether it has keys.
func (d keyedTransactions) Tx(ctx context.Context) (dialect.Tx, error) {
	own, ok := ctx.Value(keyedTxKey{}).(*keyedTx)
	if !ok {
		return d.Driver.Tx(ctx)
	}
	conn, err := d.DB().Conn(ctx)
	if err != nil {
		return nil, err
	}
	own.Conn, own.conn = entsql.Conn{ExecQuerier: conn}, conn
	if err := own.begin(ctx); err != nil {
		_ = own.Rollback()
		return nil, err
	}
	return own, nil
}

// keyedTx is a transaction with the keys of its requests.
type keyedTx struct {
	entsql.Conn
	conn *stdsql.Conn
	of   publicid.Organization
	keys []IdempotencyKey
	look KeyLook
	// answers are written with the commit, which is sent with the context commit.
	answers []KeptAnswer
	commit  context.Context
	over    bool
}

// send sends statements together on the transaction's connection.
func (t *keyedTx) send(ctx context.Context, statements *pgx.Batch) error {
	return t.conn.Raw(func(conn any) error {
		return conn.(*stdlib.Conn).Conn().SendBatch(ctx, statements).Close()
	})
}

func (t *keyedTx) begin(ctx context.Context) error {
	statements := &pgx.Batch{}
	statements.Queue("BEGIN")
	t.look.queue(statements, t.of, t.keys)
	return t.send(ctx, statements)
}

// Commit writes the answers and commits. Ent calls it.
func (t *keyedTx) Commit() error {
	if t.over {
		return stdsql.ErrTxDone
	}
	statements := &pgx.Batch{}
	if len(t.answers) > 0 {
		queueRecords(statements, t.of, t.answers)
	}
	statements.Queue("COMMIT")
	err := t.send(t.commit, statements)
	if err != nil {
		_ = t.Rollback()
		return err
	}
	t.over = true
	return t.conn.Close()
}

// Rollback undoes the transaction, unless it is over. A connection that doesn't take it any
// more is thrown away by the pool, and the server does the same.
func (t *keyedTx) Rollback() error {
	if t.over {
		return stdsql.ErrTxDone
	}
	t.over = true
	ctx, cancel := context.WithTimeout(context.Background(), connectionTimeout)
	defer cancel()
	_, err := t.conn.ExecContext(ctx, "ROLLBACK")
	if closed := t.conn.Close(); err == nil {
		err = closed
	}
	return err
}
