package main

import (
	"context"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

const (
	// exhaustedFor is longer than the statement timeout of 5 s, so every statement of the service
	// meets a database that accepts no connections.
	exhaustedFor = 8 * time.Second
	// exhaustedEvents is how many events the load writes during the part.
	exhaustedEvents = 2000
	// exhausting is the application name of the harness's connections.
	exhausting = "exhausting"
	// dialers is larger than the number of connections that one pool of the service can dial.
	dialers = 32
	// mostConnections leaves fewer of Postgres's 200 connections than one pool of the service needs.
	mostConnections = 190
)

// exhaustion takes all of Postgres's connections and ends those of the service, under load.
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

// exhaust returns the number of connections that it held at the end.
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
	taken := make(chan *pgx.Conn, 2*mostConnections) // More than Postgres has.
	var all sync.WaitGroup
	for range dialers {
		all.Go(func() { hold(dialing, ours, taken) })
	}
	for err == nil && pause(dialing, 5*pollInterval) == nil {
		// End all other connections. The harness takes the free slots before the service's pools do,
		// or in the next round.
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
			_ = pause(ctx, pollInterval) // No connection is free.
			continue
		}
		taken <- c
	}
}
