package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/api"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/postgres"
	"earshot/internal/ratelimit"
	"earshot/internal/seal"
	"earshot/internal/send"
	"earshot/internal/webhooks"
)

// statements records the SQL statements of a request.
type statements struct {
	mu  sync.Mutex
	all []pgx.TraceQueryStartData
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// explain serves a request in this process and returns the plans of its SQL statements.
func (l *lists) explain(ctx context.Context, path string) (string, error) {
	var asked statements
	own, err := postgres.Open(postgres.Options{URL: os.Getenv("DATABASE_URL"), Tracer: &asked})
	if err != nil {
		return "", err
	}
	defer own.Close()
	changes := change.NewRunner(own, nil, nil, change.Settings{})
	handler, err := api.New(api.UseCases{
		Access: access.New(own, changes, slog.Default()), Contacts: contacts.New(own, changes, contacts.Settings{}),
		Feedback: feedback.New(own, changes, contacts.New(own, changes, contacts.Settings{}), feedback.Settings{}, slog.Default()),
		Webhooks: webhooks.New(own, changes, send.NewGuard(nil, false), seal.New(), webhooks.Settings{}, slog.Default()),
	}, api.Options{RateLimits: ratelimit.NewKeys(own, 1_000_000), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	r, err := l.request(ctx, path)
	if err != nil {
		return "", err
	}
	handler.ServeHTTP(httptest.NewRecorder(), r)
	var plans strings.Builder
	for _, q := range asked.all {
		// The other statements read one row by its key.
		if !strings.Contains(q.SQL, "SELECT") {
			continue
		}
		rows, err := l.pool.Query(ctx, "EXPLAIN (ANALYZE, BUFFERS) "+q.SQL, append([]any{pgx.QueryExecModeCacheDescribe}, unmoded(q.Args)...)...)
		if err != nil {
			return "", errors.Wrap(err, "explain")
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return "", errors.Wrap(err, "explain")
		}
		fmt.Fprintf(&plans, "  %s\n    %s\n", q.SQL, strings.Join(lines, "\n    "))
	}
	return plans.String(), nil
}

// unmoded removes the query execution mode from the front of the arguments.
func unmoded(args []any) []any {
	if len(args) > 0 {
		if _, ok := args[0].(pgx.QueryExecMode); ok {
			return args[1:]
		}
	}
	return args
}
