package webhooks

import (
	"context"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// feedsOf returns a function that reads the bounds of organizations' feeds, in the order of the
// organizations.
func feedsOf(s *postgres.DB) func(context.Context, []publicid.Organization) ([]feed, error) {
	return func(ctx context.Context, of []publicid.Organization) ([]feed, error) {
		found, err := feeds(ctx, s, of)
		if err != nil {
			return nil, err
		}
		feeds := make([]feed, len(of))
		for i, id := range of {
			feeds[i] = found[id]
		}
		return feeds, nil
	}
}
