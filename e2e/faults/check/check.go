// Package check compares the receiver's ledger and the acknowledged writes with the service's
// tables, after a run in which processes were killed.
//
// It shares no code with the service and reads the tables by plain SQL. It copies the ledger into
// temporary tables of the same database. Each rule is a query, so a million deliveries need no
// memory here. It changes nothing.
//
// It compares times of the database, the ledger and the kills, so all of them must come from the
// clock of one machine.
package check

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Input is the outside view of a run.
type Input struct {
	// LedgerPath is the receiver's ledger.
	LedgerPath string
	// Database is the URL of the service's database, with the role of an owner. No delivery may be
	// pending: see Pending.
	Database string
	// Acknowledged are the writes that the API answered with 2xx.
	Acknowledged []Write
	Kills        []Kill
	// MaxAttempts is the limit of attempts of a delivery. The service's default is 5.
	MaxAttempts int
	// DisabledAfter is how many permanent failures in a row disable a webhook. The service's default
	// is 50.
	DisabledAfter int
	// Endpoints maps the ids of webhooks (whk_…) to the receiver's names of them, because the
	// service seals their URLs.
	Endpoints map[string]string
	// MayFail are the endpoints that are dead at any time. Deliveries to other endpoints never fail
	// permanently.
	MayFail []string
	// Erased are the persons who were erased at their own request.
	Erased Erased
	// Deleted are the endpoints whose webhooks were deleted, together with their deliveries.
	Deleted []string
}

// Erased describes persons whose data must be gone when no work is pending.
type Erased struct {
	// Texts occur only in their addresses, names and texts.
	Texts []string
	// Hashes are the hashes of their addresses.
	Hashes [][]byte
	// Subjects are the ids of the contacts and of their activity. Payloads about them have new bytes
	// since the erasure, so earlier receipts aren't compared with them.
	Subjects []string
}

// Once is the beginning of the title, text or name of each write with an Idempotency-Key.
const Once = "Once "

// Write is an acknowledged change.
type Write struct {
	// Subject is the id of the new or changed object: pst_…, cmt_…, vot_…, ctc_… or chg_….
	Subject string
	// Type is the type of the event. Several writes of one subject and type make as many events.
	Type string
	// At is the time of the answer.
	At time.Time
}

// Kill is a fault that the harness caused.
type Kill struct {
	// The name begins with "api" or "worker" if a process of the service died, which takes a moment.
	// All else is away for a time: "postgres", "temporal", "connections", "disk full", or a link,
	// for example "cut worker-1 to postgres".
	What string
	// At is the time of the fault. Back is the time at which the target was ready again, or zero if
	// it never was.
	At, Back time.Time
}

// Pending counts the pending deliveries of webhooks that exist.
func Pending(ctx context.Context, database string) (n int, err error) {
	c, err := pgx.Connect(ctx, database)
	if err != nil {
		return 0, errors.Wrap(err, "reach the database")
	}
	defer func() { _ = c.Close(ctx) }()
	if err := c.QueryRow(ctx, `SELECT count(*) FROM deliveries d JOIN webhooks h ON h.id = d.webhook_id
		WHERE d.status = 'pending' AND h.deleted_at IS NULL`).Scan(&n); err != nil {
		return 0, errors.Wrap(err, "count pending deliveries")
	}
	return n, nil
}

// Run checks every rule. An error means that the check itself failed. Faults of the service are in
// the report.
func Run(ctx context.Context, in Input) (Report, error) {
	c, err := pgx.Connect(ctx, in.Database)
	if err != nil {
		return Report{}, errors.Wrap(err, "reach the database")
	}
	defer func() { _ = c.Close(ctx) }()
	// All queries read one snapshot, and the rollback removes the temporary tables.
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return Report{}, errors.Wrap(err, "begin to read")
	}
	defer func() { _ = tx.Rollback(ctx) }()
	return run(ctx, tx, in)
}

func run(ctx context.Context, tx pgx.Tx, in Input) (report Report, err error) {
	for _, step := range []func(context.Context, pgx.Tx, Input) error{
		load, prepare, report.judge, report.count, report.measure,
	} {
		if err := step(ctx, tx, in); err != nil {
			return report, err
		}
	}
	return report, nil
}
