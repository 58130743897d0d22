// Package seeding fills a development database with one large organization. Its size makes
// excessive reads and writes visible. By default it has a million contacts, 200,000 posts on one
// board, and two million votes on one of them.
package seeding

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// Organization is the name of the seeded organization. The benchmarks find it by this name.
const Organization = "bench lists"

// Size is the number of rows to seed.
type Size struct {
	Contacts, Posts int
	// Votes is the number of votes on the first post. The other posts share a fifth of that number.
	Votes int
}

// Full is the size for the published figures of the project.
var Full = Size{Contacts: 1_000_000, Posts: 200_000, Votes: 2_000_000}

// Times returns the size multiplied by a factor.
func (s Size) Times(factor float64) Size {
	grown := func(n int) int { return max(1, int(float64(n)*factor)) }
	return Size{Contacts: grown(s.Contacts), Posts: grown(s.Posts), Votes: grown(s.Votes)}
}

// Fill removes the previous seed and seeds again. It locks the tables until it ends, and it needs a
// superuser.
//
// If the program ends early, the database has either the whole organization or none of it, and all
// its indexes. Contacts and feedback are written in two parallel transactions. The second
// transaction contains the organization and commits last.
func Fill(ctx context.Context, url string, size Size, progress io.Writer) error {
	if err := Remove(ctx, url, progress); err != nil {
		return err
	}
	began := time.Now()
	committed := make(chan struct{})
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		err := Unchecked(ctx, url, func(tx pgx.Tx) error {
			return (&filling{tx, size, progress}).people(ctx)
		})
		if err == nil {
			close(committed)
		}
		return err
	})
	all.Go(func() error {
		return Unchecked(ctx, url, func(tx pgx.Tx) error {
			if err := (&filling{tx, size, progress}).feedback(ctx); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-committed:
				return nil
			}
		})
	})
	if err := all.Wait(); err != nil {
		return err
	}
	if err := vacuum(context.WithoutCancel(ctx), url); err != nil {
		return err
	}
	fmt.Fprintf(progress, "%-44s %24s\n", "seeded", time.Since(began).Round(100*time.Millisecond))
	return nil
}

func vacuum(ctx context.Context, url string) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, "VACUUM (ANALYZE) "+strings.Join(append(aboutPeople, aboutFeedback...), ", ")); err != nil {
		return errors.Wrap(err, "vacuum")
	}
	return nil
}

// owned lists the tables with rows of an organization. Their order doesn't matter (see Unchecked).
var owned = []string{
	"attempts", "deliveries", "events", "recoveries", "webhooks", "votes", "comments", "post_tags", "changelog_links",
	"post_documents", "post_revenues", "posts", "contact_documents", "contacts", "changelog_entries", "tags", "boards", "api_keys", "users",
	"event_sequences", "idempotency_records", "audit_entries", "subject_records", "subject_requests", "backfill_addresses", "contact_backfills",
}

// Remove removes the seeded organization.
func Remove(ctx context.Context, url string, progress io.Writer) error {
	return RemoveOrganizations(ctx, url, progress, organizationID)
}

// RemoveOrganizations removes organizations and all their rows in one transaction.
func RemoveOrganizations(ctx context.Context, url string, progress io.Writer, ids ...[16]byte) error {
	return Unchecked(ctx, url, func(tx pgx.Tx) error {
		f := &filling{tx: tx, progress: progress}
		if _, err := tx.Exec(ctx, `DELETE FROM token_buckets WHERE bucket_id IN (SELECT id FROM api_keys WHERE organization_id = ANY ($1))`, ids); err != nil {
			return errors.Wrap(err, "remove what keys have used up")
		}
		for _, table := range owned {
			if err := f.step(ctx, "remove "+table, func() (int64, error) {
				done, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE organization_id = ANY ($1)", ids)
				return done.RowsAffected(), err
			}); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "DELETE FROM organizations WHERE id = ANY ($1)", ids); err != nil {
			return errors.Wrap(err, "remove the organization")
		}
		return nil
	})
}

// Unchecked runs a transaction without triggers, and so without checks of foreign keys. The writes
// in it must be complete by themselves, including the search documents.
func Unchecked(ctx context.Context, url string, do func(tx pgx.Tx) error) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return errors.Wrap(err, "connect")
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	tx, err := c.Begin(ctx)
	if err != nil {
		return errors.Wrap(err, "begin")
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	for _, sql := range []string{
		"SET LOCAL session_replication_role = replica",
		// Enough memory to sort a million index entries.
		"SET LOCAL maintenance_work_mem = '1GB'",
		"SET LOCAL synchronous_commit = off",
	} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return errors.Wrap(err, "prepare to seed, which takes a superuser")
		}
	}
	if err := do(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return errors.Wrap(err, "commit")
	}
	return nil
}

// filling is a seeding in progress.
type filling struct {
	tx       pgx.Tx
	size     Size
	progress io.Writer
}

// step runs one step and reports how long it took.
func (f *filling) step(ctx context.Context, what string, do func() (rows int64, err error)) error {
	began := time.Now()
	rows, err := do()
	if err != nil {
		return errors.Wrap(err, what)
	}
	if took := time.Since(began); rows > 0 || took > time.Second {
		fmt.Fprintf(f.progress, "%-44s %9d rows %9s\n", what, rows, took.Round(10*time.Millisecond))
	}
	return ctx.Err()
}

// copy writes the rows with the numbers first to last.
func (f *filling) copy(ctx context.Context, table string, columns []string, first, last int, row func(n int64) []any) error {
	n := int64(first) - 1
	return f.step(ctx, table, func() (int64, error) {
		return f.tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromFunc(func() ([]any, error) {
			// A nil row ends the copy.
			for n < int64(last) {
				n++
				if made := row(n); made != nil {
					return made, nil
				}
			}
			return nil, nil
		}))
	})
}
