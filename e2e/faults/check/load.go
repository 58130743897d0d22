package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"earshot/e2e/faults/ledger"
)

// eventPage is how many events are read at a time: some megabytes.
const eventPage = 5000

// With 64 MB, sorts and hashes of a million rows mostly stay off the disk.
const tablesSQL = `
SET LOCAL work_mem = '64MB';
SET LOCAL TimeZone = 'UTC';
CREATE TEMP TABLE receipts (
  request bigint PRIMARY KEY, endpoint text, named text, delivery uuid, type text, sum bytea, signed boolean,
  arrived timestamptz, ended timestamptz, status int
) ON COMMIT DROP;
CREATE TEMP TABLE frozen (event uuid PRIMARY KEY, sum bytea, subject text) ON COMMIT DROP;
CREATE TEMP TABLE writes (subject text, id uuid, type text, at timestamptz) ON COMMIT DROP;
CREATE TEMP TABLE kills (n int, what text, process boolean, interrupts text, at timestamptz, back timestamptz) ON COMMIT DROP;
CREATE TEMP TABLE endpoints (webhook uuid PRIMARY KEY, name text) ON COMMIT DROP;
CREATE TEMP TABLE may_fail (endpoint text) ON COMMIT DROP;
CREATE TEMP TABLE deleted (endpoint text) ON COMMIT DROP;
CREATE TEMP TABLE erased (subject text) ON COMMIT DROP;
CREATE TEMP TABLE traces (line text) ON COMMIT DROP`

// load copies the input into tables beside those of the service. It also copies hashes and subjects
// of the payloads, which SQL can't read.
func load(ctx context.Context, tx pgx.Tx, in Input) error {
	if _, err := tx.Exec(ctx, tablesSQL); err != nil {
		return errors.Wrap(err, "make the checker's tables")
	}
	if err := loadLedger(ctx, tx, in.LedgerPath); err != nil {
		return err
	}
	if err := loadWrites(ctx, tx, in.Acknowledged); err != nil {
		return err
	}
	if err := loadKills(ctx, tx, in); err != nil {
		return err
	}
	if err := loadTraces(ctx, tx, in.Erased); err != nil {
		return err
	}
	return loadEvents(ctx, tx)
}

func loadLedger(ctx context.Context, tx pgx.Tx, path string) error {
	next, stop := iter.Pull2(receipts(ledger.Read(path)))
	defer stop()
	columns := []string{
		"request", "endpoint", "named", "delivery", "type", "sum", "signed", "arrived", "ended", "status",
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"receipts"}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		r, err, more := next()
		if !more || err != nil {
			return nil, err
		}
		sum, err := hex.DecodeString(r.Sum)
		return []any{
			r.Request, r.Endpoint, r.Delivery, uuidOf(r.Delivery), r.Event, sum, r.Signed, r.At, r.ended, r.status,
		}, err
	}))
	if err != nil {
		return errors.Wrap(err, "read the ledger")
	}
	return nil
}

// receipt is a request that was read whole, with its end if there was one.
type receipt struct {
	ledger.Entry
	ended *time.Time
	// status is nil if the request wasn't answered.
	status *int
}

// receipts joins the entries of each request. It keeps only requests without an end in memory, as
// many as the receiver had at the same time.
func receipts(entries iter.Seq2[ledger.Entry, error]) iter.Seq2[receipt, error] {
	return func(yield func(receipt, error) bool) {
		open := map[int64]ledger.Entry{}
		for e, err := range entries {
			if err != nil {
				yield(receipt{}, err)
				return
			}
			if e.Kind == ledger.Arrived {
				open[e.Request] = e
				continue
			}
			arrived, ok := open[e.Request]
			if !ok {
				continue // It broke before it was read whole.
			}
			delete(open, e.Request)
			r := receipt{Entry: arrived, ended: &e.At}
			if e.Kind == ledger.Answered {
				r.status = &e.Status
			}
			if !yield(r, nil) {
				return
			}
		}
		for _, e := range open {
			if !yield(receipt{Entry: e}, nil) {
				return
			}
		}
	}
}

func loadWrites(ctx context.Context, tx pgx.Tx, writes []Write) error {
	source := pgx.CopyFromSlice(len(writes), func(i int) ([]any, error) {
		w := writes[i]
		id := uuidOf(w.Subject)
		if !id.Valid || w.Type == "" {
			return nil, errors.Errorf("write %d has no subject or no type: %q, %q", i, w.Subject, w.Type)
		}
		return []any{w.Subject, id, w.Type, w.At}, nil
	})
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"writes"}, []string{"subject", "id", "type", "at"}, source); err != nil {
		return errors.Wrap(err, "copy the acknowledged writes")
	}
	return nil
}

func loadKills(ctx context.Context, tx pgx.Tx, in Input) error {
	for n, k := range in.Kills {
		back := pgtype.Timestamptz{Time: k.Back, Valid: true}
		if k.Back.IsZero() {
			back = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
		}
		process := strings.HasPrefix(k.What, "api") || strings.HasPrefix(k.What, "worker")
		_, err := tx.Exec(ctx, `INSERT INTO kills VALUES ($1, $2, $3, $4, $5, $6)`,
			n, k.What, process, interruptedBy(k.What), k.At, back)
		if err != nil {
			return errors.Wrap(err, "copy the kills")
		}
	}
	for id, name := range in.Endpoints {
		if _, err := tx.Exec(ctx, `INSERT INTO endpoints VALUES ($1, $2)`, uuidOf(id), name); err != nil {
			return errors.Wrapf(err, "copy the endpoint of webhook %q", id)
		}
	}
	if _, err := tx.Exec(ctx, `INSERT INTO may_fail SELECT unnest($1::text[])`, in.MayFail); err != nil {
		return errors.Wrap(err, "copy the endpoints that may fail")
	}
	if _, err := tx.Exec(ctx, `INSERT INTO deleted SELECT unnest($1::text[])`, in.Deleted); err != nil {
		return errors.Wrap(err, "copy the endpoints of deleted webhooks")
	}
	return nil
}

// interruptedBy returns the kind of outage that excuses missing records; see outageTimesSQL. An
// outage of the API excuses none, because the API makes no attempts.
func interruptedBy(what string) string {
	from, to, cut := strings.Cut(strings.TrimPrefix(what, "cut "), " to ")
	switch {
	case cut && !strings.HasPrefix(from, "worker"):
		return "none"
	case cut:
		return to
	case strings.HasPrefix(what, "worker"):
		return "worker"
	case what == "postgres", what == "temporal", what == "connections", what == "disk full":
		return what
	}
	return "none"
}

// loadEvents stores the hash and the subject of each frozen payload.
func loadEvents(ctx context.Context, tx pgx.Tx) error {
	last := pgtype.UUID{Valid: true}
	for {
		rows, err := tx.Query(ctx, `SELECT id, payload FROM events WHERE id > $1 ORDER BY id LIMIT $2`, last, eventPage)
		if err != nil {
			return errors.Wrap(err, "read the events")
		}
		page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (values []any, err error) {
			var payload []byte
			if err := row.Scan(&last, &payload); err != nil {
				return nil, err
			}
			sum := sha256.Sum256(payload)
			return []any{last, sum[:], subjectOf(payload)}, nil
		})
		if err != nil {
			return errors.Wrap(err, "read the events")
		}
		if len(page) == 0 {
			return nil
		}
		columns := []string{"event", "sum", "subject"}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"frozen"}, columns, pgx.CopyFromRows(page)); err != nil {
			return errors.Wrap(err, "sum up the events")
		}
	}
}

// subjectOf returns the id of the payload's object, or "" if it can't be read.
func subjectOf(payload []byte) string {
	type thing struct {
		ID string `json:"id"`
	}
	var p struct{ Post, Vote, Comment, Entry, Contact thing }
	if json.Unmarshal(payload, &p) != nil {
		return ""
	}
	return p.Post.ID + p.Vote.ID + p.Comment.ID + p.Entry.ID + p.Contact.ID // a payload has one of them
}
