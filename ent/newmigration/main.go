// Command newmigration writes the next migrations from the changes in ent/schema. The first migration
// holds the quick changes. If indexes of existing tables change, a second migration builds them
// without blocking writes.
//
// It creates scratch databases and needs a superuser's URL in EARSHOT_TEST_POSTGRES_URL.
// `make migration name=…` provides the URL and the name.
//
// Every run also updates atlas.sum, effects.json and triggers.md, and reports new migrations that break the
// rules. After an edit by hand, run `make migration` without a name. With -triggers, the command only writes
// triggers.md (`make triggers`).
package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	atlas "ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/ent/migrations"
	"earshot/internal/migrate"
	"earshot/internal/migrate/authoring"
	"earshot/internal/postgres"
)

const (
	dir     = "ent/migrations"
	scratch = "earshot_new_migration"
)

func main() {
	only := flag.Bool("triggers", false, "only write triggers.md")
	flag.Parse()
	do := func(ctx context.Context) error { return run(ctx, flag.Arg(0)) }
	if *only {
		do = triggers
	}
	if err := do(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string) error {
	if name != "" {
		if err := write(ctx, name); err != nil {
			return err
		}
	}
	if err := rehash(); err != nil {
		return err
	}
	return record(ctx)
}

// write writes the migrations that bring ent/migrations up to ent/schema.
func write(ctx context.Context, name string) error {
	written := false
	for _, part := range []struct {
		name string
		diff func(ctx context.Context, s *postgres.DB, dir, name string) error
	}{{name, authoring.Diff}, {name + "_indexes", authoring.DiffIndexes}} {
		err := onScratch(ctx, func(url string) error {
			s, err := postgres.Open(postgres.Options{URL: url})
			if err != nil {
				return err
			}
			defer s.Close()
			return part.diff(ctx, s, dir, part.name)
		})
		switch {
		case errors.Is(err, atlas.ErrNoPlan):
			continue
		case err != nil:
			return err
		}
		written = true
	}
	if !written {
		fmt.Println("ent/schema and ent/migrations agree: nothing to write")
	}
	return nil
}

// triggers writes triggers.md from the embedded migrations.
func triggers(ctx context.Context) error {
	return onScratch(ctx, func(url string) error {
		s, err := postgres.Open(postgres.Options{URL: url})
		if err != nil {
			return err
		}
		defer s.Close()
		if _, err := migrate.Up(ctx, s); err != nil {
			return err
		}
		text, err := authoring.Triggers(ctx, url)
		if err != nil {
			return err
		}
		return writeFile("triggers.md", []byte(text))
	})
}

// onScratch calls do with the URL of an empty database.
func onScratch(ctx context.Context, do func(url string) error) error {
	server := os.Getenv("EARSHOT_TEST_POSTGRES_URL")
	if server == "" { // pgx would fall back to PGHOST, and we would drop a database there
		return errors.New("EARSHOT_TEST_POSTGRES_URL is not set: run make migration or make triggers")
	}
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
	return do(u.String())
}

// record writes the effects of the migrations to effects.json, and their triggers to triggers.md. It fails if a
// migration breaks the rules, or if a trigger has no reason.
func record(ctx context.Context) error {
	files, err := migrate.Files(os.DirFS(dir))
	if err != nil {
		return err
	}
	var (
		all     []authoring.Observed
		list    string
		lacking error // reported after the broken rules
	)
	err = onScratch(ctx, func(url string) (err error) {
		if all, err = authoring.Observe(ctx, url, files); err != nil {
			return err
		}
		list, lacking = authoring.Triggers(ctx, url)
		return nil
	})
	if err != nil {
		return err
	}
	text, err := authoring.EffectsOf(all).Text()
	if err != nil {
		return err
	}
	if err := writeFile("effects.json", text); err != nil {
		return err
	}
	broken := false
	for _, o := range all {
		if migrations.BeforeRules(o.Name) {
			continue
		}
		for _, problem := range o.Problems() {
			broken = true
			fmt.Fprintf(os.Stderr, "%s/%s: %s\n", dir, o.Name, problem)
		}
	}
	if broken {
		return errors.New("edit the files by hand, and run `make migration`")
	}
	if lacking != nil {
		return lacking
	}
	return writeFile("triggers.md", []byte(list))
}

func writeFile(name string, text []byte) error {
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil { //nolint:gosec // a source file
		return errors.Wrapf(err, "write %s", name)
	}
	return nil
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
	if err := atlas.WriteSumFile(files, sum); err != nil {
		return errors.Wrap(err, "write atlas.sum")
	}
	return nil
}
