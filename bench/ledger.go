package main

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/publicid"
)

// This file compares the answers that a run received with the rows in the database after the run. A
// fast run with wrong data is a failed run. The checks run outside of the measured time.

// acknowledged collects the ids of the answers.
type acknowledged struct {
	mu  sync.Mutex
	ids []string
}

func (a *acknowledged) add(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids = append(a.ids, id)
}

// are returns an error unless the found ids are exactly the acknowledged ones, each once.
func (a *acknowledged) are(what string, found []string) error {
	wanted := slices.Sorted(slices.Values(a.ids))
	slices.Sort(found)
	if slices.Equal(wanted, found) {
		return nil
	}
	lost, extra := 0, len(found)
	for i, id := range wanted {
		if i > 0 && id == wanted[i-1] {
			return errors.Errorf("the same %s was acknowledged twice: %s", what, id)
		}
		if _, ok := slices.BinarySearch(found, id); ok {
			extra--
		} else {
			lost++
		}
	}
	return errors.Errorf("of %d acknowledged %ss %d aren't there, and %d are there that weren't acknowledged, or twice", len(wanted), what, lost, extra)
}

// column reads ids in their public form.
func column[ID interface{ String() string }](ctx context.Context, s *stack, sql string, args ...any) ([]string, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, errors.Wrap(err, "read the ledger")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var id ID
		err := row.Scan(&id)
		return id.String(), err
	})
	if err != nil {
		return nil, errors.Wrap(err, "read the ledger")
	}
	return found, nil
}

// none returns an error if a count isn't 0.
func (s *stack) none(ctx context.Context, what, sql string, args ...any) error {
	var n int
	if err := s.pool.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		return errors.Wrapf(err, "count the %s", what)
	}
	if n != 0 {
		return errors.Errorf("there are %d %s", n, what)
	}
	return nil
}

// postsAre checks the posts of a board that only one run used.
func (s *stack) postsAre(ctx context.Context, board string, a *acknowledged) error {
	id := publicid.Read[publicid.Board](board)
	found, err := column[publicid.Post](ctx, s, "SELECT id FROM posts WHERE board_id = $1 AND deleted_at IS NULL", id)
	if err != nil {
		return err
	}
	return a.are("post", found)
}

// noDeliveries checks that events without a subscribed webhook made no deliveries.
func (s *stack) noDeliveries(ctx context.Context, of publicid.Organization, since time.Time) error {
	return s.none(ctx, "deliveries without a subscribed webhook", "SELECT count(*) FROM deliveries WHERE organization_id = $1 AND created_at >= $2", of, since)
}

// votesAre checks the members' votes on a post, and its vote count. Seeded votes have no member.
func (s *stack) votesAre(ctx context.Context, on publicid.Post, a *acknowledged) error {
	found, err := column[publicid.Vote](ctx, s, "SELECT id FROM votes WHERE post_id = $1 AND user_id IS NOT NULL", on)
	if err != nil {
		return err
	}
	if err := a.are("vote", found); err != nil {
		return err
	}
	return s.none(ctx, "posts whose vote_count isn't the number of their votes", `SELECT count(*) FROM posts p
		WHERE id = $1 AND vote_count <> (SELECT count(*) FROM votes v WHERE v.post_id = p.id)`, on)
}

// commentsAre checks the comments on a post of the run, and its comment count.
func (s *stack) commentsAre(ctx context.Context, on publicid.Post, a *acknowledged) error {
	found, err := column[publicid.Comment](ctx, s, "SELECT id FROM comments WHERE post_id = $1", on)
	if err != nil {
		return err
	}
	if err := a.are("comment", found); err != nil {
		return err
	}
	return s.none(ctx, "posts whose comment_count isn't the number of their comments", `SELECT count(*) FROM posts p
		WHERE id = $1 AND comment_count <> (SELECT count(*) FROM comments c WHERE c.post_id = p.id)`, on)
}

// contactsAre checks the contacts of a run by their external ids. Each acknowledged contact exists
// once with the acknowledged id, and was seen since the start of the run.
func (s *stack) contactsAre(ctx context.Context, of publicid.Organization, since time.Time, told map[string]string, plan string) error {
	external, ids := make([]string, 0, len(told)), &acknowledged{}
	for externalID, id := range told {
		external = append(external, externalID)
		ids.add(id)
	}
	found, err := column[publicid.Contact](ctx, s, `SELECT id FROM contacts WHERE organization_id = $1 AND external_user_id = ANY ($2)
		AND last_seen_at >= $3 AND ($4 = '' OR plan = $4)`, of, external, since, plan)
	if err != nil {
		return err
	}
	return ids.are("contact", found)
}

// listIs compares the ids in a list of posts with the result of a statement. Its $1 is the board
// and its $2 the number of posts.
func (s *stack) listIs(ctx context.Context, body []byte, sql string) error {
	var page struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(body, &page); err != nil {
		return errors.Wrap(err, "decode the list")
	}
	wanted, err := column[publicid.Post](ctx, s, sql, publicid.Read[publicid.Board](s.seeded.board), listed)
	if err != nil {
		return err
	}
	if len(wanted) == 0 || len(wanted) != len(page.Data) {
		return errors.Errorf("the list has %d posts, not %d", len(page.Data), len(wanted))
	}
	for i, p := range page.Data {
		if p.ID != wanted[i] {
			return errors.Errorf("post %d of the list is %s, not %s", i+1, p.ID, wanted[i])
		}
	}
	return nil
}
