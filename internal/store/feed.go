package store

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/publicid"
)

// Feed is the range of an organization's event numbers: from Removed+1 to Last.
type Feed struct{ Last, Removed int64 }

const feedsSQL = `SELECT organization_id, last, removed FROM event_sequences WHERE organization_id = ANY ($1)`

// Feeds returns the ranges of event numbers of organizations. It leaves out organizations without
// events.
func (s *Store) Feeds(ctx context.Context, of []publicid.Organization) (map[publicid.Organization]Feed, error) {
	rows, err := s.pool.Query(ctx, feedsSQL, UUIDs(of))
	if err != nil {
		return nil, errors.Wrap(err, "look for the feeds")
	}
	found := make(map[publicid.Organization]Feed, len(of))
	var id publicid.Organization
	var feed Feed
	_, err = pgx.ForEachRow(rows, []any{&id, &feed.Last, &feed.Removed}, func() error {
		found[id] = feed
		return nil
	})
	if err != nil {
		return nil, errors.Wrap(err, "look for the feeds")
	}
	return found, nil
}
