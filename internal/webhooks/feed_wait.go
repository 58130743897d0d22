package webhooks

import (
	"context"

	"earshot/internal/publicid"
	"earshot/internal/store"
)

// feedsOf returns a function that reads the bounds of organizations' feeds, in the order of the
// organizations.
func feedsOf(s *store.Store) func(context.Context, []publicid.Organization) ([]store.Feed, error) {
	return func(ctx context.Context, of []publicid.Organization) ([]store.Feed, error) {
		found, err := s.Feeds(ctx, of)
		if err != nil {
			return nil, err
		}
		feeds := make([]store.Feed, len(of))
		for i, id := range of {
			feeds[i] = found[id]
		}
		return feeds, nil
	}
}
