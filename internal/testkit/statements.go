package testkit

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Statements counts what a store asks of the database, as its Tracer.
type Statements struct {
	mu sync.Mutex
	// n are the statements, and trips how often somebody waited for the database. The
	// statements of a pgx.Batch are one trip.
	n, trips int
	texts    []string
}

var (
	_ pgx.QueryTracer = (*Statements)(nil)
	_ pgx.BatchTracer = (*Statements)(nil)
)

// Reset forgets what was counted.
func (s *Statements) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.trips, s.texts = 0, 0, nil
}

// Counted are the statements and round trips since the last Reset, and what they were.
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

// TraceQueryStart counts a statement with a trip of its own.
func (s *Statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.count(1, 1, q.SQL)
	return ctx
}

// TraceQueryEnd counts nothing.
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

// TraceBatchEnd counts nothing.
func (*Statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
