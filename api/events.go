package api

import (
	"context"

	"earshot/api/gen"
	"earshot/ent/db"
	"earshot/internal/webhooks"
)

func (s *server) ListEvents(ctx context.Context, r gen.ListEventsRequestObject) (gen.ListEventsResponseObject, error) {
	feed, err := s.Webhooks.Events(ctx, webhooks.FeedQuery{
		Query: largePage(ctx, nil, r.Params.Limit),
		After: r.Params.After, Types: texts(r.Params.Types), Wait: r.Params.Wait, Stopping: s.leaving, Recheck: s.Access.Reauthenticate,
	})
	if err != nil {
		return nil, err
	}
	return gen.ListEvents200JSONResponse{Data: each(feed.Events, happened), NextAfter: feed.Next}, nil
}

func happened(e *db.Event) gen.Event {
	return gen.Event{
		ID: e.ID.String(), Sequence: *e.Sequence, Type: gen.EventType(e.Type), Payload: e.Payload, CreatedAt: e.CreatedAt,
	}
}
