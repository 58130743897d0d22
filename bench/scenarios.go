package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/publicid"
)

// Each scenario runs its load and then checks its ledger.

// now returns the current time in the service's precision of milliseconds, rounded down.
func now() time.Time { return time.Now().Truncate(time.Millisecond) }

func (s *stack) createPosts(ctx context.Context, o options, t tenant) (measured, error) {
	board, err := s.newBoard(ctx)
	if err != nil {
		return measured{}, err
	}
	var made acknowledged
	since := now()
	m, err := s.loop(ctx, o, func(ctx context.Context, _ int) error {
		id, err := t.post(ctx, board)
		made.add(id)
		return err
	})
	if err != nil {
		return m, err
	}
	if err := s.postsAre(ctx, board, &made); err != nil {
		return m, err
	}
	return m, s.noDeliveries(ctx, s.organization, since)
}

// loop runs a closed loop over half of the connections of a burst.
func (s *stack) loop(ctx context.Context, o options, do operation) (measured, error) {
	return s.timed(ctx, func(ctx context.Context) (*latencies, error) {
		return closedLoop(ctx, o.period, unlimited, o.connections/2, do)
	})
}

// delivered measures the time from the request, or from its due time, to the arrival of the
// webhook. The function load makes the n posts.
func (s *stack) delivered(ctx context.Context, n int,
	load func(ctx context.Context, do func(ctx context.Context, i int, due time.Time) error) error,
) (measured, error) {
	board, err := s.newBoard(ctx)
	if err != nil {
		return measured{}, err
	}
	hook, remove, err := s.register(ctx, s.receiver.url, "post.created")
	if err != nil {
		return measured{}, err
	}
	defer remove()
	arrived := s.receiver.expect(n, hook.Secret)
	var made acknowledged
	since := now()
	m, err := s.timed(ctx, func(ctx context.Context) (*latencies, error) {
		err := load(ctx, func(ctx context.Context, i int, due time.Time) error {
			s.receiver.begin(i, due)
			id, err := s.createPost(ctx, board, s.receiver.title(i))
			made.add(id)
			return err
		})
		if err != nil {
			return nil, err
		}
		select {
		case <-arrived:
			return s.receiver.times(), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(arrivalTimeout):
			return nil, errors.Errorf("only %d of %d webhooks arrived", s.receiver.count(), n)
		}
	})
	if err != nil {
		return m, err
	}
	if err := s.postsAre(ctx, board, &made); err != nil {
		return m, err
	}
	to := publicid.Read[publicid.Webhook](hook.ID)
	if err := s.deliveriesAre(ctx, s.organization, to, since, &made); err != nil {
		return m, err
	}
	err = s.pool.QueryRow(ctx, "SELECT count(DISTINCT workflow_id)::float8 / count(*) FROM deliveries WHERE webhook_id = $1", to).Scan(&m.Workflows)
	if err != nil {
		return m, errors.Wrap(err, "count the workflows")
	}
	return m, nil
}

const arrivalTimeout = time.Minute

func (s *stack) deliveredInBurst(ctx context.Context, o options) (measured, error) {
	return s.delivered(ctx, o.posts, func(ctx context.Context, do func(context.Context, int, time.Time) error) error {
		_, err := burst(ctx, o.posts, o.connections, func(ctx context.Context, i int) error { return do(ctx, i, time.Now()) })
		return err
	})
}

func (s *stack) deliveredAt(ctx context.Context, rate int, period time.Duration) (measured, error) {
	return s.delivered(ctx, arrivals(rate, period), func(ctx context.Context, do func(context.Context, int, time.Time) error) error {
		_, err := openLoop(ctx, rate, period, do)
		return err
	})
}

// votes casts votes of different members on one post.
func (s *stack) votes(ctx context.Context, o options, on publicid.Post) (measured, error) {
	d := s.seeded
	if err := s.active(ctx, d.organization); err != nil {
		return measured{}, err
	}
	var cast acknowledged
	since := now()
	m, err := s.timed(ctx, func(ctx context.Context) (*latencies, error) {
		return closedLoop(ctx, o.period, len(d.voters), o.connections/2, func(ctx context.Context, i int) error {
			id, err := d.vote(ctx, on.String(), d.voters[i])
			cast.add(id)
			return err
		})
	})
	if err != nil {
		return m, err
	}
	if err := s.votesAre(ctx, on, &cast); err != nil {
		return m, err
	}
	if err := s.noDeliveries(ctx, d.organization, since); err != nil {
		return m, err
	}
	return m, s.retract(ctx, d.organization)
}

func (s *stack) votesOnFreshPost(ctx context.Context, o options) (measured, error) {
	board, err := s.seeded.newBoard(ctx)
	if err != nil {
		return measured{}, err
	}
	post, err := s.seeded.post(ctx, board)
	if err != nil {
		return measured{}, err
	}
	return s.votes(ctx, o, publicid.Read[publicid.Post](post))
}

func (s *stack) comments(ctx context.Context, o options) (measured, error) {
	board, err := s.newBoard(ctx)
	if err != nil {
		return measured{}, err
	}
	post, err := s.post(ctx, board)
	if err != nil {
		return measured{}, err
	}
	var made acknowledged
	since := now()
	m, err := s.loop(ctx, o, func(ctx context.Context, _ int) error {
		id, err := s.comment(ctx, post)
		made.add(id)
		return err
	})
	if err != nil {
		return m, err
	}
	if err := s.commentsAre(ctx, publicid.Read[publicid.Post](post), &made); err != nil {
		return m, err
	}
	return m, s.noDeliveries(ctx, s.organization, since)
}

// differentPages exceeds the number of concurrent reads. A hundredth of the seeded posts still
// fills this many pages of the list.
const differentPages = 60

// listPages reads different pages of one list. The query is empty or begins with &. The first page must have the
// posts that the statement wanted returns.
func (s *stack) listPages(ctx context.Context, o options, query, wanted string) (measured, error) {
	var reads []operation
	for cursor := ""; len(reads) < differentPages; {
		first, again, err := s.seeded.sameEachTime(ctx, s.seeded.postsPath(query+cursor))
		if err != nil {
			return measured{}, err
		}
		if len(reads) == 0 {
			if err := s.listIs(ctx, first, wanted); err != nil {
				return measured{}, err
			}
		}
		var page struct{ NextCursor string }
		if err := json.Unmarshal(first, &page); err != nil {
			return measured{}, errors.Wrap(err, "decode the list")
		}
		reads = append(reads, again)
		if page.NextCursor == "" {
			break // a search of few seeded posts has fewer pages
		}
		cursor = "&cursor=" + page.NextCursor
	}
	return s.loop(ctx, o, func(ctx context.Context, i int) error { return reads[i%len(reads)](ctx, i) })
}

func (s *stack) getPosts(ctx context.Context, o options) (measured, error) {
	posts := s.seeded.posts
	return s.loop(ctx, o, func(ctx context.Context, i int) error {
		// The order differs from that of the ids, because posts with adjacent ids share a database
		// page.
		return s.seeded.getPost(ctx, posts[i*7919%len(posts)])
	})
}
