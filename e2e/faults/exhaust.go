package main

import (
	"context"
	"sync"
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
	// dialers are more than a pool of the service's has connections to dial with.
	dialers = 32
	// mostConnections are so many of Postgres's 200 that not even one pool has room
	// beside them.
	mostConnections = 190
)

// exhaustion takes all of Postgres's connections and ends the service's, under load.
func (r *run) exhaustion(ctx context.Context, f *figures) error {
	ended := make(chan error, 1)
	go func() { ended <- r.load.until(ctx, exhaustedEvents) }()
	held, err := r.exhaust(ctx)
	if err != nil {
		return err
	}
	r.report("held %d connections", held)
	if held < mostConnections {
		f.violation("only %d connections of Postgres's were held", held)
	}
	return <-ended
}

// exhaust returns how many connections it held in the end.
func (r *run) exhaust(ctx context.Context) (held int, err error) {
	ours := r.stack.direct + "&application_name=" + exhausting
	ender, err := pgx.Connect(ctx, ours)
	if err != nil {
		return 0, errors.Wrap(err, "connect")
	}
	defer func() { _ = ender.Close(context.WithoutCancel(ctx)) }()
	at := time.Now()
	dialing, cancel := context.WithDeadline(ctx, at.Add(exhaustedFor))
	defer cancel()
	taken := make(chan *pgx.Conn, 2*mostConnections) // more than Postgres has
	var all sync.WaitGroup
	for range dialers {
		all.Go(func() { hold(dialing, ours, taken) })
	}
	for err == nil && pause(dialing, 5*lookEvery) == nil {
		// Those that aren't ours end, and we are faster than their pools, or in the next
		// round.
		_, err = ender.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name <> $1`, exhausting)
	}
	cancel()
	all.Wait()
	close(taken)
	held = 1 + len(taken)
	for c := range taken {
		_ = c.Close(context.WithoutCancel(ctx))
	}
	r.kills.add("connections", at, time.Now())
	if err != nil {
		return held, errors.Wrap(err, "end the service's connections")
	}
	return held, ctx.Err()
}

// hold takes connections until the context ends.
func hold(ctx context.Context, url string, taken chan<- *pgx.Conn) {
	for ctx.Err() == nil {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			_ = pause(ctx, lookEvery) // none is free
			continue
		}
		taken <- c
	}
}
