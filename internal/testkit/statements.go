package testkit

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Statements is a Tracer that counts the statements of a store.
type Statements struct {
	mu sync.Mutex
	// n is the number of statements, and trips the number of waits for the database. The statements
	// of a pgx.Batch are one trip.
	n, trips int
	texts    []string
}

var (
	_ pgx.QueryTracer = (*Statements)(nil)
	_ pgx.BatchTracer = (*Statements)(nil)
)

// Reset sets the counts to zero.
func (s *Statements) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.trips, s.texts = 0, 0, nil
}

// Counted returns the number of statements and round trips since the last Reset, and the
// statements.
func (s *Statements) Counted() (statements, trips int, texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.trips, s.texts
}

func (s *Statements) count(statements, trips int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.trips = s.n+statements, s.trips+trips
	if text != "" {
		s.texts = append(s.texts, text)
	}
}

// TraceQueryStart counts a statement and its trip.
func (s *Statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.count(1, 1, q.SQL)
	return ctx
}

// TraceQueryEnd does nothing.
func (*Statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart counts the trip of a batch.
func (s *Statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	s.count(0, 1, "")
	return ctx
}

// TraceBatchQuery counts a statement of a batch.
func (s *Statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	s.count(1, 0, q.SQL)
}

// TraceBatchEnd does nothing.
func (*Statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
