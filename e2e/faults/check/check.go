// Package check holds what a receiver wrote down and what the API acknowledged
// against the service's tables, after a run in which processes were killed.
//
// It is written apart from the service and takes nothing of it: it reads the tables by
// plain SQL. The ledger is copied into temporary tables beside them, so each rule is a
// query, and a million deliveries need no memory here. It changes nothing.
//
// Moments of the database, of the ledger and of the kills are compared: they have to
// come from one machine's clock.
package check

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Input is what is known of a run from outside.
type Input struct {
	// LedgerPath is the receiver's ledger.
	LedgerPath string
	// Database is the URL of the service's database, as an owner of it. There must be
	// quiet: see Pending.
	Database string
	// Acknowledged are the writes that the API answered with 2xx.
	Acknowledged []Write
	Kills        []Kill
	// MaxAttempts of a delivery, 5 unless the service is told otherwise.
	MaxAttempts int
	// DisabledAfter is how many deliveries that failed for good, in a row, disable their
	// webhook: 50 unless the service is told otherwise.
	DisabledAfter int
	// Endpoints are the receiver's names of webhooks, by their ids (whk_…): the service
	// seals their URLs.
	Endpoints map[string]string
	// MayFail are the endpoints that are dead, or were for a time: nothing fails for good
	// at another one.
	MayFail []string
	// Erased is who was erased at the end-user's own request.
	Erased Erased
	// Deleted are the endpoints whose webhooks were deleted, with their deliveries.
	Deleted []string
}

// Erased are persons of whom nothing may be left, once there is quiet.
type Erased struct {
	// Texts stand in nothing else than their addresses, names and words.
	Texts []string
	// Hashes are those of their addresses.
	Hashes [][]byte
	// Subjects are the ids of the contacts, and of what they did. Payloads about these have
	// other bytes since, so what was received before isn't held against them.
	Subjects []string
}

// Once begins the title, the text or the name of what is written with an Idempotency-Key.
const Once = "Once "

// Write is a change that was acknowledged.
type Write struct {
	// Subject is the id of what was made or changed: pst_…, cmt_…, vot_…, ctc_… or chg_….
	Subject string
	// Type is the event that this makes. Several writes of one subject and type make as
	// many events.
	Type string
	// At is when the answer came.
	At time.Time
}

// Kill is something that was done to the service.
type Kill struct {
	// What begins with "api" or "worker" where a process of the service died, which
	// takes a moment. All else is away for a time: "postgres", "temporal", "connections",
	// "disk full", or a link as in "cut worker-1 to postgres".
	What string
	// At is when it was done, Back when it was ready again; zero if it never was.
	At, Back time.Time
}

// Pending is how many deliveries haven't ended, of webhooks that are there.
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

// Run holds everything against everything. An error says that nothing could be judged;
// what is wrong with the service stands in the report.
func Run(ctx context.Context, in Input) (Report, error) {
	c, err := pgx.Connect(ctx, in.Database)
	if err != nil {
		return Report{}, errors.Wrap(err, "reach the database")
	}
	defer func() { _ = c.Close(ctx) }()
	// All of one moment, and nothing of it stays.
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
