package main

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

const (
	// exhaustedFor is longer than a statement's 5 s, so that everything of the
	// service's meets a database that takes no connection.
	exhaustedFor = 8 * time.Second
	// exhaustedEvents are written around it.
	exhaustedEvents = 2000
	// exhausting is the name by which the harness knows its connections.
	exhausting = "exhausting"
)

// exhaustion takes all of Postgres's connections and ends the service's, under load.
func (r *run) exhaustion(ctx context.Context, _ *figures) error {
	ended := make(chan error, 1)
	go func() { ended <- r.load.until(ctx, exhaustedEvents) }()
	if err := r.exhaust(ctx); err != nil {
		return err
	}
	return <-ended
}

func (r *run) exhaust(ctx context.Context) error {
	var taken []*pgx.Conn
	defer func() {
		for _, c := range taken {
			_ = c.Close(context.WithoutCancel(ctx))
		}
	}()
	ours := r.stack.direct + "&application_name=" + exhausting
	first, err := pgx.Connect(ctx, ours)
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	taken = append(taken, first)
	at := time.Now()
	for time.Since(at) < exhaustedFor {
		more, err := pgx.Connect(ctx, ours)
		if err == nil {
			taken = append(taken, more)
			continue
		}
		// None is free. Those that aren't ours end, and we are faster than their pools,
		// or in the next round.
		if _, err := first.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name <> $1 AND pid <> pg_backend_pid()`, exhausting); err != nil {
			return errors.Wrap(err, "end the service's connections")
		}
	}
	r.kills.add("connections", at, time.Now())
	r.report("held %d connections for %s", len(taken), exhaustedFor)
	return nil
}
