package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
)

// Report is what was found.
type Report struct {
	// Acknowledged writes.
	Acknowledged int `json:"acknowledged"`
	Events       int `json:"events"`
	// Deliveries are all, of which some are Replays and Tests. They end as one of the
	// five that follow.
	Deliveries int `json:"deliveries"`
	Replays    int `json:"replays"`
	Tests      int `json:"tests"`
	Succeeded  int `json:"succeeded"`
	// Failed after all of their attempts.
	Failed int `json:"failed"`
	// Disabled ended because their webhook was disabled, GivenUp by an operator.
	Disabled int `json:"disabled"`
	GivenUp  int `json:"givenUp"`
	Pending  int `json:"pending"`
	// Attempts are the rows, Receipts the requests in the ledger.
	Attempts int `json:"attempts"`
	Receipts int `json:"receipts"`
	// OfDeleted are the receipts whose webhook was deleted since.
	OfDeleted int `json:"ofDeleted"`
	// Unrecorded receipts have no attempt.
	Unrecorded int `json:"unrecorded"`
	// Duplicates are the receipts after which another of the same delivery came, though
	// they had been answered 2xx, or instead of being recorded. DuplicateBound counts the
	// receipts that were in flight when something was killed.
	Duplicates     int `json:"duplicates"`
	DuplicateBound int `json:"duplicateBound"`
	// Lost counts what was acknowledged or committed and did not arrive: violations of the
	// rules that say so.
	Lost int `json:"lost"`
	// Kills, in the order of the input.
	Kills []Recovery `json:"kills"`
	// Waited is, over the events that were committed before a kill and not received by
	// then, the time from Back to their first receipt. It is 0 for those that others
	// delivered meanwhile, and of several kills the last one before the receipt counts.
	Waited Times `json:"waited"`
	// Restarted are those of Waited whose kill was of a process of the service.
	Restarted Times `json:"restarted"`
	// Redone is, over the unrecorded receipts that came again, the time from one to the
	// other.
	Redone Times `json:"redone"`
	// Violations are lines for people, a rule's first ones of each, beginning with the
	// rule's name. ViolationsTotal counts all.
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

// String is the report for people, kills aside.
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
	say("what waited for a restart arrived after it within: %s", r.Waited)
	say("what a kill interrupted came again within: %s", r.Redone)
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
	// P50 and Max are in nanoseconds where they are numbers.
	P50 time.Duration `json:"p50"`
	Max time.Duration `json:"max"`
}

func (t Times) String() string {
	if t.Count == 0 {
		return "there was nothing"
	}
	return fmt.Sprintf("p50 %s, max %s (%d)", t.P50.Round(time.Millisecond), t.Max.Round(time.Millisecond), t.Count)
}
