package api

import (
	"context"

	"earshot/api/gen"
	"earshot/internal/subscribers"
)

func (s *server) ListSubscribers(ctx context.Context, r gen.ListSubscribersRequestObject) (gen.ListSubscribersResponseObject, error) {
	p, err := s.Subscribers.Subscribers(ctx, pageQuery(r.Params.Cursor, r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return gen.ListSubscribers200JSONResponse{Data: each(p.Items, subscriber), NextCursor: orNull(p.NextCursor)}, nil
}

func subscriber(s subscribers.Subscriber) gen.Subscriber {
	return gen.Subscriber{
		ContactID: s.Contact.String(), StatusUpdates: s.StatusUpdates, Changelog: s.Changelog, Suppressed: s.Suppressed, UpdatedAt: s.UpdatedAt,
	}
}
