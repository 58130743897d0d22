package store

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/internal/publicid"
)

// This file has the records of idempotency keys, by hand-written SQL: what a change answered,
// written in its own transaction, so that the same request later gets the same answer and
// changes nothing. A record that is looked for costs no round trip: that goes with BEGIN, and
// the record itself with COMMIT. It belongs to the organization of the transaction.

// IdempotencyRetention is how long a record counts.
const IdempotencyRetention = 24 * time.Hour

// IdempotencyKey is a request as records know it.
type IdempotencyKey struct {
	// ID is a hash of the key and of what it is scoped to, Fingerprint one of what is asked for.
	ID, Fingerprint [32]byte
}

// IdempotencyRecord is what was answered to a request with a key.
type IdempotencyRecord struct {
	ID          []byte
	Fingerprint []byte
	Status      int
	// Answer is the body as the caller of this package wants it kept.
	Answer []byte
}

// ErrKeyInUse is what a transaction ends with whose key another one has, which isn't over yet.
var ErrKeyInUse = errors.New("another request with this idempotency key is under way")

// RecordedError is what a transaction ends with whose key has a record: nothing was changed.
type RecordedError struct{ IdempotencyRecord }

func (*RecordedError) Error() string { return "the idempotency key has a record" }

// The lock comes first: a record that was committed while it was waited for would be missed
// the other way round. Nobody waits for it, and it ends with the transaction. The rows that
// records are about are looked for one by one: an EXISTS might read whole tables, in a plan that
// is kept from when they were small.
const (
	lockKeysSQL = `SELECT pg_try_advisory_xact_lock(k) FROM unnest($1::bigint[]) WITH ORDINALITY AS u(k, n) ORDER BY n`
	recordsSQL  = `
SELECT id, fingerprint, status, answer FROM idempotency_records
WHERE organization_id = $1 AND id = ANY ((SELECT $2::bytea[])::bytea[]) AND created_at > $3`
	insertRecordsSQL = `
INSERT INTO idempotency_records AS r (organization_id, id, created_at, fingerprint, status, answer, subjects)
SELECT $1::uuid, n.id, $2, n.fingerprint, n.status, n.answer, n.subjects::uuid[]
FROM unnest($3::bytea[], $4::bytea[], $5::int[], $6::bytea[], $7::uuid[], $8::text[]) n(id, fingerprint, status, answer, about, subjects)
WHERE n.about IS NULL OR coalesce((SELECT true FROM posts WHERE id = n.about LIMIT 1),
  (SELECT true FROM votes WHERE id = n.about LIMIT 1), (SELECT true FROM comments WHERE id = n.about LIMIT 1))
ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at, fingerprint = excluded.fingerprint,
  status = excluded.status, answer = excluded.answer, subjects = excluded.subjects`
)

// lockOf is the advisory lock of a key. Two keys that share one, of 2^64, get ErrKeyInUse while
// both are under way, and nothing worse.
func lockOf(id [32]byte) int64 { return int64(binary.BigEndian.Uint64(id[:8])) }

// The number of rows stands in the text as in retention.go.
const oldRecordsSQL = `
DELETE FROM idempotency_records WHERE id IN (
  SELECT id FROM idempotency_records WHERE created_at <= $1 ORDER BY created_at LIMIT 500 FOR UPDATE SKIP LOCKED)`

// RemoveIdempotencyRecords removes one page of records, of all organizations, that count no
// longer, and returns how many. Whole says that there may be more.
func (s *Store) RemoveIdempotencyRecords(ctx context.Context) (removed int, whole bool, err error) {
	done, err := s.pool.Exec(ctx, oldRecordsSQL, Now().Add(-IdempotencyRetention))
	if err != nil {
		return 0, false, errors.Wrap(err, "remove idempotency records")
	}
	removed = int(done.RowsAffected())
	return removed, removed == 500, nil
}

// KeyLook is what is found of keys: their locks and records.
type KeyLook struct {
	keys    []IdempotencyKey
	locked  []bool
	records []IdempotencyRecord
}

func (l *KeyLook) queue(onto *pgx.Batch, of publicid.Organization, keys []IdempotencyKey) {
	l.keys = keys
	locks, ids := make([]int64, len(keys)), make([][]byte, len(keys))
	for i, k := range keys {
		locks[i], ids[i] = lockOf(k.ID), k.ID[:]
	}
	onto.Queue(lockKeysSQL, locks).Query(func(rows pgx.Rows) (err error) {
		l.locked, err = pgx.CollectRows(rows, pgx.RowTo[bool])
		return err
	})
	onto.Queue(recordsSQL, of.UUID().String(), ids, Now().Add(-IdempotencyRetention)).Query(func(rows pgx.Rows) (err error) {
		l.records, err = pgx.CollectRows(rows, pgx.RowToStructByPos[IdempotencyRecord])
		return err
	})
}

// Taken are the keys that can't be used, by their ids: ErrKeyInUse or a RecordedError.
func (l *KeyLook) Taken() map[[32]byte]error {
	taken := map[[32]byte]error{}
	for i, k := range l.keys {
		if !l.locked[i] {
			taken[k.ID] = ErrKeyInUse
		}
	}
	for _, r := range l.records {
		taken[[32]byte(r.ID)] = &RecordedError{r}
	}
	return taken
}

// LookForKeys looks at keys, whose locks the transaction then has. What is found is known
// when the statements are sent.
func (p *Pipeline) LookForKeys(of publicid.Organization, keys []IdempotencyKey) *KeyLook {
	look := &KeyLook{}
	look.queue(p.queued, of, keys)
	return look
}

// KeepAnswers writes records of keys that were looked for and aren't taken.
func (p *Pipeline) KeepAnswers(of publicid.Organization, answers []KeptAnswer) {
	queueRecords(p.queued, of, answers)
}

// KeptAnswer is a record to be written.
type KeptAnswer struct {
	Key    IdempotencyKey
	Status int
	Answer []byte
	// Subjects are the persons and texts in the answer: contacts, members, posts and comments.
	Subjects []uuid.UUID
	// About is the row that was to be inserted for it, if any: the record is written where
	// that was.
	About uuid.UUID
}

func queueRecords(onto *pgx.Batch, of publicid.Organization, answers []KeptAnswer) {
	n := len(answers)
	ids, prints, bodies, states, about := make([][]byte, n), make([][]byte, n), make([][]byte, n), make([]int, n), make(uuidArray, n)
	subjects := make([]*string, n)
	for i, a := range answers {
		ids[i], prints[i], states[i], bodies[i] = a.Key.ID[:], a.Key.Fingerprint[:], a.Status, a.Answer
		if a.About != uuid.Nil {
			about[i].Bytes, about[i].Valid = a.About, true
		}
		subjects[i] = arrayOf(a.Subjects)
	}
	onto.Queue(insertRecordsSQL, of.UUID().String(), Now(), ids, prints, states, bodies, about, subjects)
}

// arrayOf is an array as Postgres writes one, or nil for an empty one, which the index leaves out.
// unnest would take an array of arrays apart to the single ids.
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

// RemoveAnswers removes the kept answers of an organization in which one of the ids is a subject. A
// repeated request then takes effect again. An answer whose transaction commits later is not found:
// the caller has locked the rows that such an answer could show.
func RemoveAnswers(ctx context.Context, tx *db.Tx, of publicid.Organization, subjects ...uuid.UUID) error {
	if len(subjects) == 0 {
		return nil
	}
	if _, err := tx.ExecContext(ctx, removeAnswersSQL, of, arrayOf(subjects)); err != nil {
		return errors.Wrap(err, "remove kept answers")
	}
	return nil
}
