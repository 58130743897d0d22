package webhooks

import (
	"context"
	"strconv"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/event"
	"earshot/ent/db/predicate"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const (
	// feedWindow is the number of events that one read of the feed searches for the requested
	// types. The search takes a few milliseconds.
	feedWindow = 10_000
	// maxFeedWait is the specification's limit of a long poll, in seconds.
	maxFeedWait = 30
	// feedInterval is the time between two checks for new events. All waiting requests check at the
	// same moment and share one statement. To a person, four times a second is instant.
	feedInterval = 250 * time.Millisecond
	// Limits of waiting requests, for one organization and for the process. An organization has
	// only a few readers of its feed. Each waiting request holds one of the process's 2,048
	// connections.
	mostWaitingOfOne = 16
	mostWaiting      = 512
	// feedsTogether limits the feeds in one such statement. feedsTimeout is far longer than it
	// takes.
	feedsTogether = 1000
	feedsTimeout  = 5 * time.Second
)

// FeedQuery is a request to the feed.
type FeedQuery struct {
	page.Query
	// After is the number of the last event that the caller has read. Nil starts at the oldest
	// event that is stored.
	After *int64
	// Types are the requested event types; nil means all types.
	Types *[]string
	// Wait is the number of seconds to wait if there is no event. Nil doesn't wait.
	Wait *int
	// Stopping ends the wait early.
	Stopping <-chan struct{}
	// Recheck verifies after a wait that the caller may still read the feed.
	Recheck func(ctx context.Context) error
}

// Feed is a section of an organization's events, in the order of their commits.
type Feed struct {
	Events []*db.Event
	// Next is the number of the last event that the read searched.
	Next int64
}

// Events reads the feed. It returns problem.Gone if the feed can't continue after the given number,
// for example because the retention has removed events. It returns problem.Forbidden if the feed is
// turned off.
func (s *Service) Events(ctx context.Context, q FeedQuery) (Feed, error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	if q.After != nil && *q.After < 0 {
		bad.Add("after", "minimum", "must be at least 0")
	}
	if q.Wait != nil && (*q.Wait < 0 || *q.Wait > maxFeedWait) {
		bad.Add("wait", "maximum", "must be 0 to %d", maxFeedWait)
	}
	if q.Types != nil {
		for i, name := range *q.Types {
			isEvent(&bad, problem.Item("types", i), name)
		}
	}
	if err := bad.Err(); err != nil {
		return Feed{}, err
	}
	if s.settings.FeedOff {
		return Feed{}, problem.EventFeedOff.Problem()
	}
	return s.awaitEvents(ctx, q, limit)
}

// awaitEvents reads the feed. At its end it waits for the next events.
func (s *Service) awaitEvents(ctx context.Context, q FeedQuery, limit int) (Feed, error) {
	feed, end, err := s.readEvents(ctx, q, limit)
	if err != nil || len(feed.Events) > 0 || feed.Next < end || q.Wait == nil || *q.Wait == 0 {
		return feed, err
	}
	// If too many requests wait already, the caller gets an empty answer immediately.
	leave, ok := s.waiting.Enter(change.CallerOf(ctx).Organization.ID)
	if !ok {
		return feed, nil
	}
	defer leave()
	over := time.NewTimer(time.Duration(*q.Wait) * time.Second)
	defer over.Stop()
	for len(feed.Events) == 0 && err == nil {
		select {
		case <-over.C:
			return feed, nil
		case <-q.Stopping:
			return feed, nil
		case <-ctx.Done():
			return feed, errors.Wrap(ctx.Err(), "wait for an event")
		case <-time.After(feedInterval - time.Duration(time.Now().UnixNano())%feedInterval): // the same moment for all callers
		}
		q.After = &feed.Next
		feed, _, err = s.readEvents(ctx, q, limit)
	}
	if err == nil {
		err = q.Recheck(ctx)
	}
	return feed, err
}

// readEvents reads the events after the given number. It also returns the number of the latest
// event.
func (s *Service) readEvents(ctx context.Context, q FeedQuery, limit int) (feed Feed, end int64, err error) {
	of := change.CallerOf(ctx).Organization.ID
	reach, err := s.feeds.Do(ctx, of)
	if err != nil {
		return feed, 0, err
	}
	begin := q.After == nil
	if begin {
		q.After = &reach.Removed
	}
	if *q.After < reach.Removed || *q.After > reach.Last {
		return feed, 0, goneAfter(*q.After, reach)
	}
	feed.Next = min(reach.Last, *q.After+feedWindow)
	if feed.Next == *q.After {
		return feed, reach.Last, nil
	}
	p, err := s.pageOfEvents(ctx, q, feed.Next, limit)
	if err != nil {
		return feed, 0, err
	}
	// Check again, because the retention may have removed events in the meantime.
	now, err := s.feeds.Do(ctx, of)
	switch {
	case err != nil:
		return feed, 0, err
	case *q.After < now.Removed && begin:
		return s.readEvents(ctx, FeedQuery{Query: q.Query, Types: q.Types}, limit)
	case *q.After < now.Removed:
		return feed, 0, goneAfter(*q.After, now)
	}
	if feed.Events = p.Items; p.NextCursor != nil {
		feed.Next = *p.Items[len(p.Items)-1].Sequence
	}
	return feed, reach.Last, nil
}

// pageOfEvents reads events up to upTo. That event and all events before it are committed.
func (s *Service) pageOfEvents(ctx context.Context, q FeedQuery, upTo int64, limit int) (page.Page[*db.Event], error) {
	const list = "events"
	read := func(limit, most int, where ...predicate.Event) ([]*listedEvent, error) {
		return eventPages.Read(ctx, s.store, page.Selection[predicate.Event]{
			Where: where, Order: "events.sequence", Limit: limit, Most: most,
		})
	}
	where := []predicate.Event{event.SequenceGT(*q.After), event.SequenceLTE(upTo)}
	if q.Types != nil {
		where = append(where, event.TypeIn(*q.Types...))
	}
	rows, err := read(limit+1, page.FirstRead, where...)
	if err != nil {
		return page.Page[*db.Event]{}, errors.Wrap(err, "list events")
	}
	place := func(e *listedEvent) []string { return []string{strconv.FormatInt(*e.Sequence, 10)} }
	out, err := page.Filled(ctx, page.LargeRows[publicid.Event, *listedEvent]{
		List: list, Memory: q.Memory, Place: place, ID: func(e *listedEvent) publicid.Event { return e.ID },
		Load: func(ids ...publicid.Event) ([]*listedEvent, error) {
			return read(len(ids), page.All, event.IDIn(ids...))
		},
		Size: func(e *listedEvent) int { return page.JSONSize(e.Payload) },
	}, page.Cut(list, rows, limit, place))
	return page.Each(out, func(e *listedEvent) *db.Event { return &e.Event }), err
}

func goneAfter(after int64, reach feed) error {
	return problem.New(problem.Gone, "The feed doesn't go on from there; read what you keep anew, and go on from latest.").
		With("after", after).With("oldest", reach.Removed+1).With("latest", reach.Last)
}
