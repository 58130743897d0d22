package store

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"earshot/internal/publicid"
)

// Pipeline is a transaction of one organization whose statements are queued and then sent
// together, so that what belongs to many callers takes two round trips: one for what is
// read and locked, and one for what is written, with the commit. Its statements are by
// hand, and each is limited to rows of the organization.
type Pipeline struct {
	conn   *pgxpool.Conn
	of     string
	queued *pgx.Batch
}

// InPipeline runs fn in one transaction of the organization. What fn leaves queued when it
// returns nil is sent with the commit. As with InTx, nothing slow belongs into fn, and an
// error that is Unknown may have committed; unlike there, fn isn't run again after a
// deadlock.
func (s *Store) InPipeline(ctx context.Context, of publicid.Organization, fn func(p *Pipeline) error) (err error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	p := &Pipeline{conn: conn, of: of.UUID().String(), queued: &pgx.Batch{}}
	p.queued.Queue("BEGIN")
	// After a commit this isn't needed, and where the connection is gone the server does it.
	defer func() {
		if err != nil && !conn.Conn().IsClosed() {
			_, _ = conn.Exec(ctx, "ROLLBACK")
		}
	}()
	if err := fn(p); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return errors.Wrap(err, "commit") // nothing was sent
	}
	p.queued.Queue("COMMIT")
	if err := p.Send(ctx); err != nil {
		var failed *pgconn.PgError
		if errors.As(err, &failed) {
			return err
		}
		return &unknownOutcome{err}
	}
	return nil
}

// acquire waits for a connection for some seconds only, as connector does.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectionTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "wait for a connection")
	}
	return conn, nil
}

// Send sends what is queued and reads the answers: what the statements found is known
// when it returns.
func (p *Pipeline) Send(ctx context.Context) error {
	queued := p.queued
	p.queued = &pgx.Batch{}
	if err := p.conn.SendBatch(ctx, queued).Close(); err != nil {
		return errors.Wrap(err, "send the statements")
	}
	return nil
}

// collect queues a query and puts what it finds into a slice once it is sent.
func collect[T any](p *Pipeline, into *[]T, scan pgx.RowToFunc[T], query string, args ...any) {
	p.queued.Queue(query, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, scan)
		return err
	})
}
