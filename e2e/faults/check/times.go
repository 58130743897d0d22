package check

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Recovery is a kill with the times of its recovery.
type Recovery struct {
	Kill
	// First is the time from Back to the first receipt after it. It is nil if there was none.
	First *time.Duration `json:"first"`
	// Waited is the part of Report.Waited that belongs to this kill.
	Waited Times `json:"waited"`
}

// waitedSQL selects the events that waited. Each has the last kill before its first receipt and the
// seconds from Back to that receipt.
const waitedSQL = `
CREATE TEMP TABLE waited ON COMMIT DROP AS
SELECT DISTINCT ON (e.id) k.n, greatest(0, extract(epoch FROM e.arrived - k.back))::float8 AS seconds
FROM (
  SELECT e.id, e.created_at, min(q.arrived) AS arrived
  FROM events e JOIN deliveries d ON d.event_id = e.id JOIN requests q ON q.delivery = d.id GROUP BY e.id
) e JOIN kills k ON k.at > e.created_at AND k.at < e.arrived AND isfinite(k.back)
ORDER BY e.id, k.at DESC`

const quantiles = `
  count(*), coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY seconds), 0), coalesce(max(seconds), 0)`

const killSQL = `
SELECT w.*, k.n,
  (SELECT extract(epoch FROM min(arrived) - k.back)::float8 FROM requests WHERE arrived >= k.back AND isfinite(k.back))
FROM kills k CROSS JOIN LATERAL (SELECT ` + quantiles + ` FROM waited WHERE n = k.n) w
ORDER BY k.n`

const redoneSQL = `
SELECT ` + quantiles + ` FROM (
  SELECT extract(epoch FROM again - arrived)::float8 AS seconds
  FROM requests WHERE attempt IS NULL AND again IS NOT NULL
) r`

// measure calculates the recovery times.
func (r *Report) measure(ctx context.Context, tx pgx.Tx, in Input) error {
	if _, err := tx.Exec(ctx, waitedSQL); err != nil {
		return errors.Wrap(err, "look for the events that waited")
	}
	var err error
	if r.Waited, err = scanTimes(tx.QueryRow(ctx, `SELECT `+quantiles+` FROM waited`)); err != nil {
		return errors.Wrap(err, "time the events that waited")
	}
	restarted := tx.QueryRow(ctx, `SELECT `+quantiles+` FROM waited JOIN kills USING (n) WHERE process`)
	if r.Restarted, err = scanTimes(restarted); err != nil {
		return errors.Wrap(err, "time the events that waited for a process")
	}
	if r.Redone, err = scanTimes(tx.QueryRow(ctx, redoneSQL)); err != nil {
		return errors.Wrap(err, "time the repeated attempts")
	}
	rows, err := tx.Query(ctx, killSQL)
	if err != nil {
		return errors.Wrap(err, "time the kills")
	}
	r.Kills, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (k Recovery, err error) {
		var n int
		var first *float64
		if k.Waited, err = scanTimes(row, &n, &first); err != nil {
			return k, err
		}
		k.Kill = in.Kills[n]
		if first != nil {
			d := seconds(*first)
			k.First = &d
		}
		return k, nil
	})
	if err != nil {
		return errors.Wrap(err, "time the kills")
	}
	return nil
}

// scanTimes scans the quantiles and the columns after them.
func scanTimes(row interface{ Scan(into ...any) error }, more ...any) (t Times, err error) {
	var p50, longest float64
	err = row.Scan(append([]any{&t.Count, &p50, &longest}, more...)...)
	t.P50, t.Max = seconds(p50), seconds(longest)
	return t, err
}

// seconds rounds to whole microseconds, the precision of the database.
func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}
