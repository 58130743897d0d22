package change

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// This file stores the records of idempotency keys with hand-written SQL. A record holds the answer
// to a change and is written in the change's transaction. A repeated request gets the same answer
// and changes nothing. The look-up is sent with BEGIN, and the insert with
// COMMIT. Records belong to the organization of the transaction.

// IdempotencyRetention is the time for which a record is valid.
const IdempotencyRetention = 24 * time.Hour

// Key is the idempotency key of a request.
type Key struct {
	// ID is a hash of the key and its scope. Fingerprint is a hash of the request.
	ID, Fingerprint [32]byte
}

// idempotencyRecord is the stored answer to a request with a key.
type idempotencyRecord struct {
	ID          []byte
	Fingerprint []byte
	Status      int
	// Answer is the body in the format of this package's caller.
	Answer []byte
}

// errKeyInUse is returned when another running transaction holds the key.
var errKeyInUse = errors.New("another request with this idempotency key is under way")

// recordedError is returned when the key already has a record. Nothing was changed.
type recordedError struct{ idempotencyRecord }

func (*recordedError) Error() string { return "the idempotency key has a record" }

// The lock comes before the read of the records. In the other order, the transaction would miss a
// record that is committed in between. The lock is only tried, never waited for, and it ends with
// the transaction.
const (
	lockKeysSQL = `SELECT pg_try_advisory_xact_lock(k) FROM unnest($1::bigint[]) WITH ORDINALITY AS u(k, n) ORDER BY n`
	recordsSQL  = `
SELECT id, fingerprint, status, answer FROM idempotency_records
WHERE organization_id = $1 AND id = ANY ((SELECT $2::bytea[])::bytea[]) AND created_at > $3`
	insertRecordsSQL = `
INSERT INTO idempotency_records AS r (organization_id, id, created_at, fingerprint, status, answer, subjects)
SELECT $1::uuid, n.id, $2, n.fingerprint, n.status, n.answer, n.subjects::uuid[]
FROM unnest($3::bytea[], $4::bytea[], $5::int[], $6::bytea[], $7::text[]) n(id, fingerprint, status, answer, subjects)
ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at, fingerprint = excluded.fingerprint,
  status = excluded.status, answer = excluded.answer, subjects = excluded.subjects`
)

// lockOf is the advisory lock of a key. If two keys share one of the 2^64 locks, one of them gets
// errKeyInUse while both are running.
func lockOf(id [32]byte) int64 { return int64(binary.BigEndian.Uint64(id[:8])) }

// keyLook is the result of a look-up of keys: their locks and records.
type keyLook struct {
	keys    []Key
	locked  []bool
	records []idempotencyRecord
}

func (l *keyLook) queue(onto *pgx.Batch, of publicid.Organization, keys []Key) {
	l.keys = keys
	locks, ids := make([]int64, len(keys)), make([][]byte, len(keys))
	for i, k := range keys {
		locks[i], ids[i] = lockOf(k.ID), k.ID[:]
	}
	onto.Queue(lockKeysSQL, locks).Query(func(rows pgx.Rows) (err error) {
		l.locked, err = pgx.CollectRows(rows, pgx.RowTo[bool])
		return err
	})
	onto.Queue(recordsSQL, of.UUID().String(), ids, postgres.Now().Add(-IdempotencyRetention)).Query(func(rows pgx.Rows) (err error) {
		l.records, err = pgx.CollectRows(rows, pgx.RowToStructByPos[idempotencyRecord])
		return err
	})
}

// Taken returns the keys that can't be used, by their ids, with errKeyInUse or a recordedError. It
// returns none before the look-up and after a failed one.
func (l *keyLook) Taken() map[[32]byte]error {
	taken := map[[32]byte]error{}
	for i, locked := range l.locked {
		if !locked {
			taken[l.keys[i].ID] = errKeyInUse
		}
	}
	for _, r := range l.records {
		taken[[32]byte(r.ID)] = &recordedError{r}
	}
	return taken
}

// keptAnswer is a record to insert.
type keptAnswer struct {
	Key    Key
	Status int
	Answer []byte
	// Subjects are the ids of contacts, members, posts and comments that the answer contains.
	Subjects []uuid.UUID
}

func queueRecords(onto *pgx.Batch, of publicid.Organization, answers []keptAnswer) {
	n := len(answers)
	ids, prints, bodies, states := make([][]byte, n), make([][]byte, n), make([][]byte, n), make([]int, n)
	subjects := make([]*string, n)
	for i, a := range answers {
		ids[i], prints[i], states[i], bodies[i] = a.Key.ID[:], a.Key.Fingerprint[:], a.Status, a.Answer
		subjects[i] = arrayOf(a.Subjects)
	}
	onto.Queue(insertRecordsSQL, of.UUID().String(), postgres.Now(), ids, prints, states, bodies, subjects)
}

// arrayOf returns a Postgres array literal. It returns nil for an empty array, which the index
// leaves out. The arrays are passed as text, because unnest would split an array of arrays into
// single ids.
func arrayOf(ids []uuid.UUID) *string {
	if len(ids) == 0 {
		return nil
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	array := "{" + strings.Join(texts, ",") + "}"
	return &array
}

const removeAnswersSQL = `DELETE FROM idempotency_records WHERE organization_id = $1 AND subjects && $2::text::uuid[]`

// RemoveAnswers removes the kept answers of the organization in which one of the ids is a subject. A
// repeated request then takes effect again. An answer whose transaction commits later is not found:
// the caller has locked the rows that such an answer could show.
func RemoveAnswers(ctx context.Context, tx *db.Tx, subjects ...uuid.UUID) error {
	if len(subjects) == 0 {
		return nil
	}
	if _, err := postgres.ExecTx(ctx, tx, removeAnswersSQL, arrayOf(subjects)); err != nil {
		return errors.Wrap(err, "remove kept answers")
	}
	return nil
}
