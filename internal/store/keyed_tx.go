package store

import (
	"context"
	stdsql "database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
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

// HeldTx is a transaction that is done but for its commit.
type HeldTx struct {
	tx  *db.Tx
	own *keyedTx
}

// Hold runs fn in a transaction as InTx does, for a request with a key, and leaves it open:
// Commit or Rollback must follow soon. It returns ErrKeyInUse or a RecordedError instead of
// running fn where the key is taken.
func (s *Store) Hold(ctx context.Context, of publicid.Organization, key IdempotencyKey, fn func(tx *db.Tx) error) (held *HeldTx, err error) {
	err = again(func() error {
		own := &keyedTx{of: of, keys: []IdempotencyKey{key}}
		tx, err := s.client.Tx(context.WithValue(ctx, keyedTxKey{}, own))
		if err != nil {
			return errors.Wrap(err, "begin")
		}
		held = &HeldTx{tx, own}
		done := false
		defer func() {
			if !done {
				held.Rollback()
			}
		}()
		if err := own.look.Taken()[key.ID]; err != nil {
			return err
		}
		err = fn(tx)
		done = err == nil
		return err
	})
	return held, err
}

// Commit commits with the record of an answer, whose key is that of the transaction. As with InTx, an error that is Unknown
// may have committed.
func (h *HeldTx) Commit(ctx context.Context, answer KeptAnswer) error {
	if err := ctx.Err(); err != nil {
		h.Rollback()
		return errors.Wrap(err, "commit") // it wasn't sent
	}
	answer.Key = h.own.keys[0]
	h.own.commit, h.own.answers = ctx, []KeptAnswer{answer}
	if err := h.tx.Commit(); err != nil {
		return errors.Wrap(&unknownOutcome{err}, "commit")
	}
	return nil
}

// Rollback undoes the transaction, unless it is committed.
func (h *HeldTx) Rollback() { _ = h.tx.Rollback() }

// keyedTransactions is Ent's driver with transactions that have keys.
type keyedTransactions struct{ *entsql.Driver }

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
