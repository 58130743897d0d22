package change

import (
	"context"

	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// atCommit are the rows that a transaction of inTxWithRows writes with its commit.
type atCommit struct {
	// Events are inserted in their order, each with a delivery for every enabled webhook that
	// subscribes to its type. The insert locks the organization's event counter.
	Events []eventRow
	// SubscribedOnly leaves out events without a subscriber.
	SubscribedOnly bool
	Answers        []keptAnswer
}

// takenKeys returns the keys of a transaction that cannot be used, by their ids, with errKeyInUse or a
// recordedError. It costs a round trip before the first statement.
type takenKeys func(context.Context) (map[[32]byte]error, error)

// inTxWithRows runs a change of one organization in a transaction. It locks and looks up the keys with
// BEGIN, and writes the rows that fn returns with COMMIT. fn must fail if it includes a key that is taken.
//
// inTxWithRows returns the deliveries of the events. After a commit with an Unknown outcome some or
// all are missing, and the sweep starts them if they exist.
func inTxWithRows(
	ctx context.Context, s *postgres.DB, of publicid.Organization, keys []Key,
	fn func(tx *db.Tx, taken takenKeys) (atCommit, error),
) (made []deliveryRow, err error) {
	var look *keyLook
	atBegin := func(onto *pgx.Batch) {
		look = &keyLook{}
		if len(keys) > 0 {
			look.queue(onto, of, keys)
		}
	}
	err = s.InTxWithRides(ctx, atBegin, func(tx *db.Tx, begin func(context.Context) error) (func(*pgx.Batch), error) {
		made = nil
		last, err := fn(tx, func(ctx context.Context) (map[[32]byte]error, error) {
			if len(keys) == 0 {
				return nil, nil
			}
			err := begin(ctx)
			return look.Taken(), err
		})
		return func(onto *pgx.Batch) {
			if len(last.Events) > 0 {
				queueEvents(onto, of, last, &made)
			}
			if len(last.Answers) > 0 {
				queueRecords(onto, of, last.Answers)
			}
		}, err
	})
	return made, err
}
