package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/publicid"
)

// settleTime is ample for the records of the last arrivals.
const settleTime = 20 * time.Second

// deliveriesAre checks that each acknowledged post has one event, one delivery, one attempt and one
// request at the receiver. No delivery may be pending.
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

// settled waits until the webhook has no pending delivery.
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

// got checks that the receiver got each delivery once with a valid signature, and no other request.
func (r *receiver) got(sent map[string]bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forged > 0 || r.strays > 0 {
		return errors.Errorf("the receiver got %d requests whose signature isn't right, and %d of no post of this run; the first was %s",
			r.forged, r.strays, r.oddity)
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
