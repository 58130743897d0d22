// Command seed fills the database of the running stack with one large organization, or removes it.
// At its size, a list that reads too many rows is visibly slow (see bench/seeding). `make bench`
// reads the organization, and `make bench ARGS=-lists` measures its lists. Seeding again replaces
// the organization. It takes a minute and reports its progress on stderr.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-faster/errors"

	"earshot/bench/seeding"
)

func main() {
	s := seeding.Full
	flag.IntVar(&s.Contacts, "contacts", s.Contacts, "contacts")
	flag.IntVar(&s.Posts, "posts", s.Posts, "posts on the large board")
	flag.IntVar(&s.Votes, "votes", s.Votes, "votes on the first post; the others have a fifth as many between them")
	remove := flag.Bool("remove", false, "only remove the rows of an earlier run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, *remove); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s seeding.Size, onlyRemove bool) error {
	if min(s.Contacts, s.Posts, s.Votes) < 1 {
		return errors.New("there must be at least one contact, one post and one vote")
	}
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		return errors.New("DATABASE_URL is missing: run `make up` and then `make bench-seed`, which reads .earshot/dev.env")
	}
	if onlyRemove {
		return seeding.Remove(ctx, url, os.Stderr)
	}
	return seeding.Fill(ctx, url, s, os.Stderr)
}
