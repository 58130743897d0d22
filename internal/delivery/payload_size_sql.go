package delivery

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// PayloadSize is how much memory the payload of a delivery takes, and the organization that owns it.
type PayloadSize struct {
	Organization publicid.Organization
	Bytes        int
}

// Postgres knows the length of a large value without reading it.
const payloadSizesSQL = `
SELECT w.place, d.organization_id, octet_length(e.payload)
FROM unnest($1::uuid[]) WITH ORDINALITY AS w(id, place)
JOIN deliveries d ON d.id = w.id
JOIN events e ON e.id = d.event_id`

// PayloadSizes returns the sizes of the deliveries' payloads, in the order of the deliveries. A
// delivery without a row has a zero PayloadSize.
func PayloadSizes(ctx context.Context, s *postgres.DB, deliveries []publicid.Delivery) ([]PayloadSize, error) {
	ids := make([]string, len(deliveries))
	for i, id := range deliveries {
		ids[i] = id.UUID().String()
	}
	rows, err := s.Across(ofAll).Query(ctx, payloadSizesSQL, ids)
	if err != nil {
		return nil, errors.Wrap(err, "look for the sizes of payloads")
	}
	defer rows.Close()
	sizes := make([]PayloadSize, len(deliveries))
	for rows.Next() {
		var place int
		var size PayloadSize
		if err := rows.Scan(&place, &size.Organization, &size.Bytes); err != nil {
			return nil, errors.Wrap(err, "read the size of a payload")
		}
		sizes[place-1] = size
	}
	if err := rows.Err(); err != nil {
		return nil, errors.Wrap(err, "look for the sizes of payloads")
	}
	return sizes, nil
}
