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

// Event is the payload of an event. It is a pointer to one of the …Event types, which a type switch
// distinguishes, or to an UnknownEvent.
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

// MarshalJSON returns the payload as it came.
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

// FollowOptions select where in the feed to begin, and which events to read.
type FollowOptions struct {
	// After is the sequence of the last event that you have; 0 begins before the first event ever. The
	// default is to begin with the oldest event that is stored.
	After *int64
	// Save stores the position in the feed, for After in the next run. Follow calls it for each event
	// when the loop asks for the next one. A crash therefore repeats at most one event. Save may be nil.
	Save func(ctx context.Context, sequence int64) error
	// Types are the events to read. The default is all of them.
	Types []EventType
	// Wait is how long a request waits for an event, in whole seconds. The default is 30, which is the
	// maximum.
	Wait time.Duration
}

// Follow iterates over the feed of events without an end. It waits for new events, and for as long as
// necessary while the service is unreachable. An error ends the iteration. It is an error that a retry
// can't fix, such as ErrGone, an error of Save, or the error of the context.
func (s *EventsService) Follow(ctx context.Context, o FollowOptions, options ...CallOption) iter.Seq2[*FeedEvent, error] {
	return func(yield func(*FeedEvent, error) bool) {
		if err := s.follow(ctx, o, options, yield); err != nil {
			yield(nil, err)
		}
	}
}

// follow returns nil when the loop ends.
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
		case moved: // save the position, so that skipped events aren't searched again
			if err := o.Save(ctx, page.NextAfter); err != nil {
				return fmt.Errorf("earshot: save the place in the feed: %w", err)
			}
		case time.Since(began) < time.Duration(params.Wait)*time.Second/2:
			// The service has answered immediately because too many requests of the organization wait.
			if err := s.core.sleep(ctx, time.Second+s.core.part(time.Second)); err != nil {
				return err
			}
		}
		params.After = &page.NextAfter
	}
}

// next requests a page until it gets one.
func (s *EventsService) next(ctx context.Context, params ListEventsParams, options []CallOption) (*EventFeed, error) {
	options = append(slices.Clone(options), MaxRetries(math.MaxInt))
	for {
		page, err := s.List(ctx, params, options...)
		if err == nil || !mendable(err) {
			return page, err
		}
		// Other calls leave such a long wait to their caller.
		e := (*Error)(nil)
		errors.As(err, &e)
		if err := s.core.sleep(ctx, e.RetryAfter); err != nil {
			return nil, err
		}
	}
}
