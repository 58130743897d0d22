package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Report is the result of a check.
type Report struct {
	// Acknowledged counts the acknowledged writes.
	Acknowledged int `json:"acknowledged"`
	Events       int `json:"events"`
	// Deliveries counts all deliveries, including Replays and Tests. Each one ends in one of the
	// five states that follow.
	Deliveries int `json:"deliveries"`
	Replays    int `json:"replays"`
	Tests      int `json:"tests"`
	Succeeded  int `json:"succeeded"`
	// Failed counts those that failed after all of their attempts.
	Failed int `json:"failed"`
	// Disabled counts those that ended because their webhook was disabled, GivenUp those that an
	// operator gave up.
	Disabled int `json:"disabled"`
	GivenUp  int `json:"givenUp"`
	Pending  int `json:"pending"`
	// Attempts counts the rows, and Receipts the requests in the ledger.
	Attempts int `json:"attempts"`
	Receipts int `json:"receipts"`
	// OfDeleted counts the receipts of webhooks deleted since.
	OfDeleted int `json:"ofDeleted"`
	// Unrecorded counts the receipts without an attempt.
	Unrecorded int `json:"unrecorded"`
	// Duplicates counts receipts that were followed by another of the same delivery, although they
	// were answered 2xx or have no record. DuplicateBound counts the receipts in flight at a kill.
	Duplicates     int `json:"duplicates"`
	DuplicateBound int `json:"duplicateBound"`
	// Lost counts acknowledged or committed changes that didn't arrive: the violations of the rules
	// marked as lost.
	Lost int `json:"lost"`
	// Kills are in the order of the input.
	Kills []Recovery `json:"kills"`
	// Waited is the time from Back to the first receipt, for events that were committed before a
	// kill and received after it. It is 0 if another process delivered the event before Back. If
	// there were several kills, the last one before the receipt counts.
	Waited Times `json:"waited"`
	// Restarted is the part of Waited whose kill was of a process of the service.
	Restarted Times `json:"restarted"`
	// Redone is the time from an unrecorded receipt to the next receipt of its delivery.
	Redone Times `json:"redone"`
	// Violations are readable lines that begin with the rule's name, a limited number of each rule.
	// ViolationsTotal counts all.
	Violations      []string `json:"violations"`
	ViolationsTotal int      `json:"violationsTotal"`
}

const countSQL = `
SELECT (SELECT count(*) FROM writes), (SELECT count(*) FROM events), (SELECT count(*) FROM attempts), d.*, q.*
FROM (
  SELECT count(*), count(replay_of), count(*) FILTER (WHERE event_type = 'webhook.test'),
    count(*) FILTER (WHERE status = 'succeeded'),
    count(*) FILTER (WHERE status = 'failed' AND last_error NOT IN ('webhook_disabled', 'given_up')),
    count(*) FILTER (WHERE status = 'failed' AND last_error = 'webhook_disabled'),
    count(*) FILTER (WHERE status = 'failed' AND last_error = 'given_up'),
    count(*) FILTER (WHERE status = 'pending')
  FROM deliveries
) d, (
  SELECT count(*), count(*) FILTER (WHERE EXISTS (SELECT FROM deleted WHERE endpoint = r.endpoint)),
    count(*) FILTER (WHERE known AND attempt IS NULL), count(*) FILTER (WHERE ` + isDuplicate + `),
    count(*) FILTER (WHERE ` + atKill + `)
  FROM requests r
) q`

func (r *Report) count(ctx context.Context, tx pgx.Tx, _ Input) error {
	err := tx.QueryRow(ctx, countSQL).Scan(&r.Acknowledged, &r.Events, &r.Attempts,
		&r.Deliveries, &r.Replays, &r.Tests, &r.Succeeded, &r.Failed, &r.Disabled, &r.GivenUp, &r.Pending,
		&r.Receipts, &r.OfDeleted, &r.Unrecorded, &r.Duplicates, &r.DuplicateBound)
	if err != nil {
		return errors.Wrap(err, "count")
	}
	return nil
}

// String formats the report as text, without the kills.
func (r Report) String() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("%d writes acknowledged, %d events, %d deliveries (%d replays, %d tests), %d lost",
		r.Acknowledged, r.Events, r.Deliveries, r.Replays, r.Tests, r.Lost)
	say("%d succeeded, %d failed after all attempts, %d ended with their webhook disabled, %d given up, %d pending",
		r.Succeeded, r.Failed, r.Disabled, r.GivenUp, r.Pending)
	say("%d receipts (%d of webhooks deleted since), %d attempts recorded, %d receipts without one",
		r.Receipts, r.OfDeleted, r.Attempts, r.Unrecorded)
	say("%d duplicates; %d attempts were in flight at %d kills", r.Duplicates, r.DuplicateBound, len(r.Kills))
	say("events that waited for a restart arrived after it within: %s", r.Waited)
	say("attempts that a kill interrupted were repeated within: %s", r.Redone)
	if r.ViolationsTotal > 0 {
		say("%d violations:", r.ViolationsTotal)
		for _, line := range r.Violations {
			say("  %s", line)
		}
	}
	return b.String()
}

// Times sums up durations.
type Times struct {
	Count int `json:"count"`
	// P50 and Max are in nanoseconds in JSON.
	P50 time.Duration `json:"p50"`
	Max time.Duration `json:"max"`
}

func (t Times) String() string {
	if t.Count == 0 {
		return "there was nothing"
	}
	return fmt.Sprintf("p50 %s, max %s (%d)", t.P50.Round(time.Millisecond), t.Max.Round(time.Millisecond), t.Count)
}
