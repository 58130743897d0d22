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
	"earshot/internal/store"
)

const (
	// feedWindow is how many events a read of the feed looks at for those of the wanted types:
	// some milliseconds of work.
	feedWindow = 10_000
	// maxFeedWait is the specification's of a long poll, in seconds.
	maxFeedWait = 30
	// feedInterval is how often those who wait look for an event, all at the same moment and by
	// one statement: four times a second is at once for a person.
	feedInterval = 250 * time.Millisecond
	// An organization has some readers of its feed; each that waits holds a connection, of
	// which a process has 2,048 for all.
	mostWaitingOfOne = 16
	mostWaiting      = 512
	// feedsTogether bounds that statement, feedsTimeout is far more than it takes.
	feedsTogether = 1000
	feedsTimeout  = 5 * time.Second
)

// FeedQuery is what a caller asks of the feed.
type FeedQuery struct {
	page.Query
	// After is the number of the last event that the caller knows; nil is to begin with the
	// oldest one that is kept.
	After *int64
	// Types are those of the events; none is all.
	Types *[]string
	// Wait is for how many seconds to wait for an event where there is none; nil is not to.
	Wait *int
	// Stopping ends the wait early.
	Stopping <-chan struct{}
	// Recheck judges after a wait whether the caller may still read.
	Recheck func(ctx context.Context) error
}

// Feed is a part of the events of an organization, in the order in which they were committed.
type Feed struct {
	Events []*db.Event
	// Next is the number of the last event that was looked at.
	Next int64
}

// Events reads the feed. It is problem.Gone where the events after the place aren't there any
// more, and problem.Forbidden where the feed is off.
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
		return Feed{}, problem.New(problem.Forbidden, "This deployment keeps no feed of events.").With("reason", "event_feed_off")
	}
	return s.awaitEvents(ctx, q, limit)
}

// awaitEvents reads, and at the end of the feed waits for what follows.
func (s *Service) awaitEvents(ctx context.Context, q FeedQuery, limit int) (Feed, error) {
	feed, end, err := s.readEvents(ctx, q, limit)
	if err != nil || len(feed.Events) > 0 || feed.Next < end || q.Wait == nil || *q.Wait == 0 {
		return feed, err
	}
	// A caller without a place is answered at once, as if it had asked not to wait.
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
		case <-time.After(feedInterval - time.Duration(time.Now().UnixNano())%feedInterval): // the same moment for all
		}
		q.After = &feed.Next
		feed, _, err = s.readEvents(ctx, q, limit)
	}
	if err == nil {
		err = q.Recheck(ctx)
	}
	return feed, err
}

// readEvents reads what follows the place, and returns the number of the latest event, too.
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
	// Looked for once more, because the retention may have removed events in between.
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

// pageOfEvents reads events up to one, which is committed, and with it all before it.
func (s *Service) pageOfEvents(ctx context.Context, q FeedQuery, upTo int64, limit int) (page.Page[*db.Event], error) {
	const list = "events"
	read := func(limit, most int, where ...predicate.Event) ([]*store.ListedEvent, error) {
		return store.EventPages.Read(ctx, s.store, store.PageOf[predicate.Event]{
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
	place := func(e *store.ListedEvent) []string { return []string{strconv.FormatInt(*e.Sequence, 10)} }
	out, err := page.LargeRows[publicid.Event, *store.ListedEvent]{
		List: list, Memory: q.Memory, Place: place, ID: func(e *store.ListedEvent) publicid.Event { return e.ID },
		Load: func(ids ...publicid.Event) ([]*store.ListedEvent, error) {
			return read(len(ids), page.All, event.IDIn(ids...))
		},
		Size: func(e *store.ListedEvent) int { return page.JSONSize(e.Payload) },
	}.Filled(ctx, page.Cut(list, rows, limit, place))
	return page.Each(out, func(e *store.ListedEvent) *db.Event { return &e.Event }), err
}

func goneAfter(after int64, reach store.Feed) error {
	return problem.New(problem.Gone, "The feed doesn't go on from there; read what you keep anew, and go on from latest.").
		With("after", after).With("oldest", reach.Removed+1).With("latest", reach.Last)
}
