package webhooks

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// feed is the range of an organization's event numbers: from Removed+1 to Last.
type feed struct{ Last, Removed int64 }

const feedsSQL = `SELECT organization_id, last, removed FROM event_sequences WHERE organization_id = ANY ($1)`

// feeds returns the ranges of event numbers of organizations. It leaves out organizations without
// events.
func feeds(ctx context.Context, s *postgres.DB, of []publicid.Organization) (map[publicid.Organization]feed, error) {
	rows, err := s.Across("one query serves the waiting readers of all organizations").Query(ctx, feedsSQL, postgres.UUIDs(of))
	if err != nil {
		return nil, errors.Wrap(err, "look for the feeds")
	}
	found := make(map[publicid.Organization]feed, len(of))
	var id publicid.Organization
	var feed feed
	_, err = pgx.ForEachRow(rows, []any{&id, &feed.Last, &feed.Removed}, func() error {
		found[id] = feed
		return nil
	})
	if err != nil {
		return nil, errors.Wrap(err, "look for the feeds")
	}
	return found, nil
}
