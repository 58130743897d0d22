package privacy

import (
	"context"
	"fmt"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// EventHead is the beginning of an event.
type EventHead struct {
	ID   publicid.Event
	Type string
	// Head is the beginning of the payload.
	Head []byte
}

// EventHeads reads the beginnings of an organization's events after an id, in the order of their
// ids. With it, a caller walks through all events. It uses the index that the deliveries' foreign
// key needs, so the events of other organizations cost nothing.
func EventHeads(
	ctx context.Context, tx *db.Tx, after uuid.UUID, head, limit int,
) (found []EventHead, err error) {
	// The limit is a literal as in retention.go.
	err = postgres.QueryTx(ctx, tx, postgres.All(&found, pgx.RowToStructByPos[EventHead]), fmt.Sprintf(`SELECT id, type, substring(payload, 1, %d)
FROM events WHERE organization_id = $1 AND id > $2 ORDER BY organization_id, id LIMIT %d`, head, limit), after)
	if err != nil {
		return nil, errors.Wrap(err, "walk through the events")
	}
	return found, nil
}

// replacePayload replaces the payload of an event. Later attempts and reads use the new one.
func replacePayload(ctx context.Context, tx *db.Tx, id publicid.Event, payload []byte) error {
	if _, err := postgres.ExecTx(ctx, tx, `UPDATE events SET payload = $3 WHERE organization_id = $1 AND id = $2`, id, payload); err != nil {
		return errors.Wrap(err, "replace a payload")
	}
	return nil
}

// These select the deliveries of the events that an erasure has changed, and of the event of the
// deletion.
const (
	eventsOfRequest = `subject_records r JOIN deliveries d ON d.event_id = r.item_id`
	ofRequest       = `r.organization_id = $1 AND r.request_id = $2 AND r.kind = 'event'`
)

// clearAnswers removes the answers of receivers to the deliveries of a request's events, because
// they may quote the events. It removes at most limit answers, and returns how many.
func clearAnswers(ctx context.Context, tx *db.Tx, request publicid.SubjectRequest, limit int) (int, error) {
	n, err := postgres.ExecTx(ctx, tx, fmt.Sprintf(`UPDATE attempts SET response_body = NULL WHERE id IN (
  SELECT a.id FROM %s JOIN attempts a ON a.delivery_id = d.id WHERE %s AND a.response_body IS NOT NULL LIMIT %d)`,
		eventsOfRequest, ofRequest, limit), request)
	if err != nil {
		return 0, errors.Wrap(err, "clear the receivers' answers")
	}
	return n, nil
}

// onTheirWay counts the deliveries of a request's events that a worker may be attempting with the
// old payload. These are the deliveries with an attempt under way. If pending is true, it counts all
// pending ones, too. An attempt is under way until it is recorded, which may be after the end of its
// lease.
func onTheirWay(ctx context.Context, tx *db.Tx, request publicid.SubjectRequest, pending bool) (int, error) {
	found, err := oneColumn[int](ctx, tx,
		`SELECT count(*)::int FROM `+eventsOfRequest+` WHERE `+ofRequest+`
  AND (d.lease_until > now() OR d.status = 'pending' AND (d.lease_until IS NOT NULL OR $3))`, request, pending)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}
