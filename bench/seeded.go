package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"earshot/bench/seeding"
	"earshot/internal/access"
	"earshot/internal/publicid"
)

// seeded is the organization of bench/seeding, with members that vote.
type seeded struct {
	tenant
	// posts are on the large board. The first post has all the votes.
	posts  []publicid.Post
	voters []string
}

// The number of different posts to read. Fewer posts would stay in the processors' caches.
const postsRead = 1000

var errNotSeeded = errors.New("nothing is seeded: run `make bench-seed`, which takes a minute")

// page returns the number of posts in a list of the large board.
func (d *seeded) page() int { return min(listed, len(d.posts)) }

func (d *seeded) boardID() publicid.Board { return publicid.Read[publicid.Board](d.board) }

// findSeeded returns the seeded organization and its member.
func findSeeded(ctx context.Context, pool *pgxpool.Pool) (org publicid.Organization, member publicid.User, err error) {
	err = pool.QueryRow(ctx, `SELECT o.id, u.id FROM organizations o JOIN users u ON u.organization_id = o.id WHERE o.name = $1
		ORDER BY u.id LIMIT 1`, seeding.Organization).Scan(&org, &member)
	if errors.Is(err, pgx.ErrNoRows) {
		return org, member, errNotSeeded
	}
	if err != nil {
		return org, member, errors.Wrap(err, "find the seeded organization")
	}
	return org, member, nil
}

// openSeeded opens the seeded organization. It seeds one first if there is none.
func (s *stack) openSeeded(ctx context.Context, size seeding.Size) error {
	org, member, err := findSeeded(ctx, s.pool)
	if errors.Is(err, errNotSeeded) {
		fmt.Fprintf(os.Stderr, "seeding %d contacts, %d posts and %d votes on one of them\n", size.Contacts, size.Posts, size.Votes)
		if err := seeding.Fill(ctx, s.at.database, size, os.Stderr); err != nil {
			return err
		}
		org, member, err = findSeeded(ctx, s.pool)
	}
	if err != nil {
		return err
	}
	d := &seeded{}
	if err := s.withAccess(func(keys *access.Service) error {
		d.tenant, err = s.enter(ctx, keys, org, member)
		return err
	}); err != nil {
		return err
	}
	var board publicid.Board
	if err := s.pool.QueryRow(ctx, "SELECT id FROM boards WHERE organization_id = $1 ORDER BY id LIMIT 1", org).Scan(&board); err != nil {
		return errors.Wrap(err, "find the seeded board")
	}
	d.board = board.String()
	rows, err := s.pool.Query(ctx, "SELECT id FROM posts WHERE board_id = $1 AND deleted_at IS NULL ORDER BY id LIMIT $2", board, postsRead)
	if err != nil {
		return errors.Wrap(err, "find the seeded posts")
	}
	if d.posts, err = pgx.CollectRows(rows, pgx.RowTo[publicid.Post]); err != nil {
		return errors.Wrap(err, "find the seeded posts")
	}
	s.seeded = d
	// Voters of a run that was killed.
	if err := s.removeVoters(ctx, org); err != nil {
		return err
	}
	d.voters, err = s.makeVoters(ctx, org, maxVoters)
	return err
}

// tidySeeded removes the rows that the load added to the seeded organization. It recognizes them by
// their names.
func (s *stack) tidySeeded(ctx context.Context) error {
	org := s.seeded.organization.UUID()
	if err := s.removeVoters(ctx, s.seeded.organization); err != nil {
		return err
	}
	const (
		boards = "(SELECT id FROM boards WHERE organization_id = $1 AND name = 'Bench')"
		posts  = "(SELECT id FROM posts WHERE board_id IN " + boards + ")"
		people = "(SELECT id FROM contacts WHERE organization_id = $1 AND external_user_id LIKE 'bench-%')"
	)
	// A referring row is deleted before the row that it refers to. The deliveries were deleted with
	// their webhooks.
	return seeding.Unchecked(ctx, s.at.database, func(tx pgx.Tx) error {
		for _, sql := range []string{
			"DELETE FROM comments WHERE post_id IN " + posts,
			"DELETE FROM post_documents WHERE post_id IN " + posts,
			"DELETE FROM posts WHERE board_id IN " + boards,
			"DELETE FROM boards WHERE id IN " + boards,
			"DELETE FROM contact_documents WHERE contact_id IN " + people,
			"DELETE FROM contacts WHERE id IN " + people,
			"DELETE FROM events WHERE organization_id = $1",
			"DELETE FROM api_keys WHERE organization_id = $1 AND name = 'bench'",
		} {
			if _, err := tx.Exec(ctx, sql, org); err != nil {
				return errors.Wrap(err, "remove the rows that the load added")
			}
		}
		return nil
	})
}
