package ratelimit

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/internal/postgres"
)

// This file limits the number of strangers that an organization e-mails. An address that only an
// API client has supplied gets a slot before its first e-mail. The slots of an organization form a
// sliding window: at most a fixed number of them begins within any hour.
//
// The slots are rows of a logged table, so the limit holds across processes, restarts and a crash
// of Postgres. A slot stays after the e-mail is sent, and later e-mails need no other slot.

// FirstMailSlot is the time at which the slot of an address begins, in the organization of the
// context. It is zero if the address has no slot.
func FirstMailSlot(ctx context.Context, s *postgres.DB, hash []byte) (at time.Time, err error) {
	err = s.QueryRow(ctx, []any{&at}, `SELECT slot_at FROM first_mails WHERE organization_id = $1 AND email_hash = $2`, hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		return at, errors.Wrap(err, "look for the slot of a first e-mail")
	}
	return at, nil
}

// The slot begins now, or one hour after the slot that was taken perHour slots earlier. The time is
// that of the statement, because the transaction may have waited for the lock.
const takeFirstMailSlotSQL = `
INSERT INTO first_mails AS f (organization_id, email_hash, slot_at)
SELECT $1, $2, greatest(clock_timestamp(), (
  SELECT slot_at + interval '1 hour' FROM first_mails WHERE organization_id = $1 ORDER BY slot_at DESC OFFSET $3 - 1 LIMIT 1))
ON CONFLICT (organization_id, email_hash) DO UPDATE SET slot_at = f.slot_at
RETURNING slot_at`

// TakeFirstMailSlot gives an address a slot in the organization of the context, or returns its
// existing slot. At most perHour slots begin within an hour.
func TakeFirstMailSlot(ctx context.Context, s *postgres.DB, hash []byte, perHour int) (at time.Time, err error) {
	err = s.InTx(ctx, func(tx *db.Tx) error {
		// The lock serializes transactions, so that two of them can't both take the last slot of an hour.
		_, err := postgres.ExecTx(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended('first mails ' || $1::uuid::text, 0))`)
		if err != nil {
			return errors.Wrap(err, "lock the slots")
		}
		return postgres.QueryTx(ctx, tx, postgres.EachRow([]any{&at}, func() {}), takeFirstMailSlotSQL, hash, perHour)
	})
	if err != nil {
		return at, errors.Wrap(err, "take a slot for a first e-mail")
	}
	return at, nil
}
