// Command seed fills the database of the running stack with one organization of a
// size at which a list that reads too much shows: a million contacts, 200,000
// posts on one board and two million votes. `make bench ARGS=-lists` measures it.
// It takes minutes and tells how far it is; seeding again starts anew.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Name of the organization, by which the measuring finds it.
const organization = "bench lists"

type size struct{ contacts, posts, votes int }

func main() {
	var s size
	flag.IntVar(&s.contacts, "contacts", 1_000_000, "contacts")
	flag.IntVar(&s.posts, "posts", 200_000, "posts on the large board")
	flag.IntVar(&s.votes, "votes", 2_000_000, "votes")
	remove := flag.Bool("remove", false, "only remove what was seeded before")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, *remove); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s size, onlyRemove bool) error {
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		return errors.New("DATABASE_URL is missing: run `make up` and then `make bench-seed`, which reads .earshot/dev.env")
	}
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for _, step := range removal {
		if err := do(ctx, c, step, organization); err != nil {
			return err
		}
	}
	if onlyRemove {
		return nil
	}
	for _, step := range filling(s) {
		if err := do(ctx, c, step, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// step is one statement with what to say of it.
type step struct {
	what, sql string
	args      []any
}

func do(ctx context.Context, c *pgx.Conn, s step, args ...any) error {
	began := time.Now()
	done, err := c.Exec(ctx, s.sql, args...)
	if err != nil {
		return errors.Wrap(err, s.what)
	}
	if done.RowsAffected() > 0 || time.Since(began) > time.Second {
		fmt.Printf("%-28s %9d rows %8s\n", s.what, done.RowsAffected(), time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}
