package earshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
)

// Event is the payload of an event: a pointer to one of the types that are named …Event, to be told apart by a
// type switch, or an UnknownEvent.
type Event interface {
	// EventName is the event's name, such as post.created.
	EventName() string
}

// UnknownEvent is the payload of an event that this version doesn't know.
type UnknownEvent struct {
	// Event is its name.
	Event string
	// JSON is the payload as it came.
	JSON json.RawMessage
}

// EventName is the event's name.
func (e *UnknownEvent) EventName() string { return e.Event }

// MarshalJSON gives the payload back as it came.
func (e *UnknownEvent) MarshalJSON() ([]byte, error) { return e.JSON, nil }

// decodeEvent reads the payload of any event.
func decodeEvent(data []byte) (Event, error) {
	var head struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if head.Event == "" {
		return nil, errors.New("it doesn't say which event it is")
	}
	e := newEvent(head.Event)
	if e == nil {
		return &UnknownEvent{Event: head.Event, JSON: slices.Clone(data)}, nil
	}
	return e, json.Unmarshal(data, e)
}

// FollowOptions say where in the feed to begin, and what of it counts.
type FollowOptions struct {
	// After is the sequence of the last event that you know, 0 before the first one of all. Where it is nil
	// the feed begins with the oldest event that is kept.
	After *int64
	// Save keeps the place in the feed, to be After next time. It is called for each event once you have come
	// back for the next one, so that a crash repeats at most one. It may be nil.
	Save func(ctx context.Context, sequence int64) error
	// Types are the events that count, all where there are none.
	Types []EventType
	// Wait is how long a request waits for an event, in whole seconds; 30, which is the most, where it is zero.
	Wait time.Duration
}

// Follow iterates over the feed of events without an end: it waits for what comes next, and for as long
// as it takes while the service can't be reached. An error is the last that it yields: one that a
// repetition can't mend, such as ErrGone, or one of Save, or that of the context, which ends it.
func (s *EventsService) Follow(ctx context.Context, o FollowOptions, options ...CallOption) iter.Seq2[*FeedEvent, error] {
	return func(yield func(*FeedEvent, error) bool) {
		if err := s.follow(ctx, o, options, yield); err != nil {
			yield(nil, err)
		}
	}
}

// follow returns nil once nobody wants any more.
func (s *EventsService) follow(ctx context.Context, o FollowOptions, options []CallOption, yield func(*FeedEvent, error) bool) error {
	if o.Save == nil {
		o.Save = func(context.Context, int64) error { return nil }
	}
	params := ListEventsParams{After: o.After, Types: o.Types, Wait: 30}
	if o.Wait > 0 {
		params.Wait = max(1, int64(o.Wait/time.Second))
	}
	for {
		began := time.Now()
		page, err := s.next(ctx, params, options)
		if err != nil {
			return err
		}
		for i := range page.Data {
			e := &page.Data[i]
			if !yield(e, nil) {
				return nil
			}
			if err := o.Save(ctx, e.Sequence); err != nil {
				return fmt.Errorf("earshot: save the place in the feed: %w", err)
			}
		}
		moved := params.After == nil || *params.After != page.NextAfter
		switch {
		case len(page.Data) > 0:
		case moved: // what the filter has left out need not be looked through again
			if err := o.Save(ctx, page.NextAfter); err != nil {
				return fmt.Errorf("earshot: save the place in the feed: %w", err)
			}
		case time.Since(began) < time.Duration(params.Wait)*time.Second/2:
			// So many requests of the organization wait that the service has answered at once.
			if err := s.core.sleep(ctx, time.Second+s.core.part(time.Second)); err != nil {
				return err
			}
		}
		params.After = &page.NextAfter
	}
}

// next asks for a page until there is one.
func (s *EventsService) next(ctx context.Context, params ListEventsParams, options []CallOption) (*EventFeed, error) {
	options = append(slices.Clone(options), MaxRetries(math.MaxInt))
	for {
		page, err := s.List(ctx, params, options...)
		if err == nil || !mendable(err) {
			return page, err
		}
		// Other calls leave it to their caller to wait for so long.
		e := (*Error)(nil)
		errors.As(err, &e)
		if err := s.core.sleep(ctx, e.RetryAfter); err != nil {
			return nil, err
		}
	}
}
