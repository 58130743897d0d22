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

// This file holds what a run was told against what the database has after it: a fast run
// that is wrong is a failed run. The clock has stopped by then.

// acknowledged are the ids that answers had.
type acknowledged struct {
	mu  sync.Mutex
	ids []string
}

func (a *acknowledged) add(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids = append(a.ids, id)
}

// are returns an error unless these are the acknowledged ids, each once.
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

// column reads ids as their public form.
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

// postsAre checks the posts of a board that one run had to itself.
func (s *stack) postsAre(ctx context.Context, board string, a *acknowledged) error {
	id := publicid.Read[publicid.Board](board)
	found, err := column[publicid.Post](ctx, s, "SELECT id FROM posts WHERE board_id = $1 AND deleted_at IS NULL", id)
	if err != nil {
		return err
	}
	return a.are("post", found)
}

// noEvents checks that what nobody subscribes to made none.
func (s *stack) noEvents(ctx context.Context, of publicid.Organization, since time.Time) error {
	return s.none(ctx, "events that nobody subscribed to", "SELECT count(*) FROM events WHERE organization_id = $1 AND created_at >= $2", of, since)
}

// settleTime is ample for the records behind the last arrivals.
const settleTime = 20 * time.Second

// deliveriesAre checks that each acknowledged post has one event, one delivery, one attempt
// and one request at the receiver, and that nothing is pending.
func (s *stack) deliveriesAre(ctx context.Context, of publicid.Organization, to publicid.Webhook, since time.Time, a *acknowledged) error {
	if err := s.settled(ctx, to); err != nil {
		return err
	}
	rows, err := s.pool.Query(ctx, `SELECT d.id, e.payload, d.status = 'succeeded' AND d.attempt_count = 1
			AND (SELECT count(*) FROM attempts t WHERE t.delivery_id = d.id AND t.response_status = 200) = 1
		FROM deliveries d JOIN events e ON e.id = d.event_id AND e.type = d.event_type WHERE d.webhook_id = $1`, to)
	if err != nil {
		return errors.Wrap(err, "read the deliveries")
	}
	var (
		id      publicid.Delivery
		payload []byte
		once    bool
		event   struct{ Post struct{ ID string } }
		posts   []string
		sent    = map[string]bool{}
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &payload, &once}, func() error {
		if !once {
			return errors.Errorf("the delivery %s hasn't succeeded by one attempt", id)
		}
		if err := json.Unmarshal(payload, &event); err != nil {
			return errors.Wrapf(err, "read the event of %s", id)
		}
		posts, sent[id.String()] = append(posts, event.Post.ID), true
		return nil
	})
	if err != nil {
		return errors.Wrap(err, "read the deliveries")
	}
	if err := a.are("event's post", posts); err != nil {
		return err
	}
	var events int
	err = s.pool.QueryRow(ctx, "SELECT count(*) FROM events WHERE organization_id = $1 AND created_at >= $2 AND type = 'post.created'",
		of, since).Scan(&events)
	if err != nil {
		return errors.Wrap(err, "count the events")
	}
	if events != len(posts) {
		return errors.Errorf("%d posts have %d events", len(posts), events)
	}
	return s.receiver.got(sent)
}

// settled waits until nothing is pending.
func (s *stack) settled(ctx context.Context, to publicid.Webhook) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, errors.Errorf("deliveries were still pending %s after the last arrival", settleTime))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var pending bool
		err := s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM deliveries WHERE webhook_id = $1 AND status = 'pending')", to).Scan(&pending)
		if context.Cause(ctx) != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return errors.Wrap(err, "look for pending deliveries")
		}
		if !pending {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// got checks that each of the deliveries came once, rightly signed, and nothing else.
func (r *receiver) got(sent map[string]bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forged > 0 || r.strays > 0 {
		return errors.Errorf("the receiver got %d requests whose signature isn't right, and %d of no post of this run", r.forged, r.strays)
	}
	for id, times := range r.deliveries {
		if times != 1 || !sent[id] {
			return errors.Errorf("the delivery %s came %d times, and is one of this run: %t", id, times, sent[id])
		}
	}
	if len(r.deliveries) != len(sent) {
		return errors.Errorf("of %d deliveries %d came", len(sent), len(r.deliveries))
	}
	return nil
}

// votesAre checks the members' votes on a post, and what it counts. Seeded votes have no member.
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

// commentsAre checks the comments on a post of the run's own, and what it counts.
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

// contactsAre checks that each acknowledged contact, by the caller's own id, is there once, as
// it was acknowledged, and was seen since.
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

// listIs checks the ids of a list of posts against those that the statement finds, which has the
// board for $1 and the number of posts for $2.
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
