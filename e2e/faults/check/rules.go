package check

import (
	"context"
	"fmt"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// linesOfARule bounds how many violations of one rule a report lists. A few show the cause, and a
// broken service breaks a rule a million times.
const linesOfARule = 20

// rule is a condition that must hold after any kill.
type rule struct {
	// name is the prefix of each violation.
	name string
	// sql returns a line for each violation.
	sql string
	// lost marks rules whose violation means that an acknowledged change didn't arrive.
	lost bool
}

var rules = []rule{
	{name: "delivery missing", sql: missingSQL, lost: true},
	{name: "delivery twice", sql: twiceSQL},
	{name: "delivery uncalled for", sql: uncalledSQL},
	{name: "event twice", sql: eventTwiceSQL},
	{name: "event numbers", sql: numberedSQL, lost: true},
	{name: "replay", sql: replaySQL},
	{name: "replay twice", sql: replayTwiceSQL},
	{name: "replay missing", sql: replayMissingSQL, lost: true},
	{name: "recovery", sql: recoverySQL},
	{name: "took effect twice", sql: onceSQL},
	{name: "write lost", sql: writeLostSQL, lost: true},
	{name: "event lost", sql: eventLostSQL, lost: true},
	{name: "pending", sql: pendingSQL, lost: true},
	{name: "success unproven", sql: unprovenSQL, lost: true},
	{name: "gave up early", sql: earlySQL},
	{name: "end unexplained", sql: unexplainedSQL},
	{name: "attempt numbers", sql: numbersSQL},
	{name: "attempt order", sql: orderSQL},
	{name: "state", sql: stateSQL},
	{name: "failed", sql: failedSQL, lost: true},
	{name: "given up", sql: givenUpSQL},
	{name: "webhook disabled", sql: disabledSQL},
	{name: "answer made up", sql: madeUpSQL},
	{name: "attempt unreceived", sql: unreceivedSQL},
	{name: "receipt of nothing", sql: nothingSQL},
	{name: "receipt misdirected", sql: misdirectedSQL},
	{name: "body", sql: bodySQL},
	{name: "signature", sql: signatureSQL},
	{name: "receipt unrecorded", sql: unrecordedSQL},
	{name: "repeated", sql: repeatedSQL},
	{name: "interrupted too often", sql: tooOftenSQL},
	{name: "duplicates", sql: duplicatesSQL},
	{name: "erased", sql: `SELECT line FROM traces`},
}

const termsSQL = `CREATE TEMP TABLE terms (max_attempts int, disabled_after int) ON COMMIT DROP`

// judge collects the violations of each rule.
func (r *Report) judge(ctx context.Context, tx pgx.Tx, in Input) error {
	if _, err := tx.Exec(ctx, termsSQL); err != nil {
		return errors.Wrap(err, "note the terms")
	}
	if _, err := tx.Exec(ctx, `INSERT INTO terms VALUES ($1, $2)`, in.MaxAttempts, in.DisabledAfter); err != nil {
		return errors.Wrap(err, "note the terms")
	}
	for _, rule := range rules {
		rows, err := tx.Query(ctx,
			`SELECT line, count(*) OVER () FROM (`+rule.sql+`) broken (line) ORDER BY line LIMIT $1`, linesOfARule)
		if err != nil {
			return errors.Wrap(err, rule.name)
		}
		total, line := 0, ""
		_, err = pgx.ForEachRow(rows, []any{&line, &total}, func() error {
			r.Violations = append(r.Violations, rule.name+": "+line)
			return nil
		})
		if err != nil {
			return errors.Wrap(err, rule.name)
		}
		if total > linesOfARule {
			r.Violations = append(r.Violations, fmt.Sprintf("%s: … and %d more", rule.name, total-linesOfARule))
		}
		r.ViolationsTotal += total
		if rule.lost {
			r.Lost += total
		}
	}
	return nil
}
