// Command newmigration writes the next migration from what changed in
// ent/schema. It wants a superuser's URL in EARSHOT_TEST_POSTGRES_URL and makes
// a scratch database there; `make migration name=…` provides both. After an edit
// by hand, `go run ./ent/newmigration --rehash` brings atlas.sum up to date.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/store"
)

const (
	dir     = "ent/migrations"
	scratch = "earshot_new_migration"
)

func main() {
	if len(os.Args) != 2 || os.Args[1] == "" {
		fmt.Fprintln(os.Stderr, "usage: make migration name=add_something")
		os.Exit(2)
	}
	if os.Args[1] == "--rehash" {
		if err := rehash(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	err := run(context.Background(), os.Args[1])
	switch {
	case errors.Is(err, migrate.ErrNoPlan):
		fmt.Println("ent/schema and ent/migrations agree: nothing to write")
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string) error {
	server := os.Getenv("EARSHOT_TEST_POSTGRES_URL")
	admin, err := pgx.Connect(ctx, server)
	if err != nil {
		return errors.Wrap(err, "connect to EARSHOT_TEST_POSTGRES_URL")
	}
	defer func() { _ = admin.Close(ctx) }()
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + scratch, "CREATE DATABASE " + scratch} {
		if _, err := admin.Exec(ctx, statement); err != nil {
			return errors.Wrap(err, "make the scratch database")
		}
	}
	u, err := url.Parse(server)
	if err != nil {
		return errors.Wrap(err, "parse EARSHOT_TEST_POSTGRES_URL")
	}
	u.Path = "/" + scratch
	s, err := store.Open(store.Options{URL: u.String()})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Diff(ctx, dir, name)
}

func rehash() error {
	files, err := sqltool.NewGooseDir(dir)
	if err != nil {
		return errors.Wrap(err, "open the migrations")
	}
	sum, err := files.Checksum()
	if err != nil {
		return errors.Wrap(err, "hash the migrations")
	}
	if err := migrate.WriteSumFile(files, sum); err != nil {
		return errors.Wrap(err, "write atlas.sum")
	}
	return nil
}
