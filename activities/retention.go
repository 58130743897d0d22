package activities

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/delivery"
	"earshot/internal/failpoint"
	"earshot/internal/postgres"
	"earshot/internal/ratelimit"
	"earshot/internal/retention"
	"earshot/internal/webhooks"
)

// RemoveName is the wire name of the activity.
const RemoveName = "remove_expired_rows"

const (
	// removeTime limits the work of one run. Runs start every hour, so the retention works at most
	// three quarters of the time, and an activity ends before the next run starts.
	removeTime = 45 * time.Minute
	// restPerPage is the rest after a page, as a multiple of the time that the page took. The
	// retention therefore uses at most half a processor of Postgres.
	restPerPage = 1
	// longestRest applies to pages that are slow because Postgres is busy. It must be below the
	// activity's heartbeat timeout.
	longestRest = 5 * time.Second
)

// Retention removes rows that are older than the deployment's limits.
type Retention struct {
	store *postgres.DB
	keep  time.Duration
	count *Counts
	log   *slog.Logger
}

// NewRetention makes the activity. Rows are kept for the duration keep; 0 keeps them forever.
func NewRetention(s *postgres.DB, keep time.Duration, counts *Counts, log *slog.Logger) *Retention {
	return &Retention{store: s, keep: keep, count: counts, log: log}
}

// RemoveResult counts the removed rows.
type RemoveResult struct {
	Deliveries int `json:"deliveries"`
	Events     int `json:"events"`
	Recoveries int `json:"recoveries"`
	// Webhooks are deleted webhooks. Their deliveries count as Deliveries.
	Webhooks int `json:"webhooks,omitempty"`
	// IdempotencyRecords are kept for a day, regardless of the deployment's setting.
	IdempotencyRecords int `json:"idempotencyRecords,omitempty"`
	// Tombstones mark deleted rows for clients that keep a copy of a list.
	Tombstones int `json:"tombstones,omitempty"`
	// AuditEntries are kept for a year, and so are SubjectRequests, the receipts of exports and
	// erasures. SubjectRecords, the results of exports, are kept for a week.
	AuditEntries    int `json:"auditEntries,omitempty"`
	SubjectRecords  int `json:"subjectRecords,omitempty"`
	SubjectRequests int `json:"subjectRequests,omitempty"`
	// Networks of submissions are kept for a month, FirstMails (slots of first e-mails) for a year.
	Networks   int `json:"networks,omitempty"`
	FirstMails int `json:"firstMails,omitempty"`
	// Unfinished says that the time ran out before everything was checked.
	Unfinished bool `json:"unfinished,omitempty"`
}

// progress is the heartbeat of a removal. A retry continues from it.
type progress struct {
	// Step is the kind that is being removed, and After is the place within it.
	Step   int          `json:"step"`
	After  string       `json:"after,omitempty"`
	Result RemoveResult `json:"result"`
}

// removals are the kinds in their order. Deliveries come before the events that they refer to.
var removals = []struct {
	kind  retention.Expired
	name  string
	count func(*RemoveResult) *int
}{
	{retention.ExpiredDeliveries, "deliveries", func(r *RemoveResult) *int { return &r.Deliveries }},
	{retention.ExpiredEvents, "events", func(r *RemoveResult) *int { return &r.Events }},
	{retention.ExpiredRecoveries, "recoveries", func(r *RemoveResult) *int { return &r.Recoveries }},
}

// RemoveExpired removes old rows. A retry continues where the previous try was cut off.
//
// Ended deliveries with their attempts, unreferenced events, ended recoveries and tombstones go
// after the deployment's retention period.
//
// These rows go regardless of that period:
//   - Everything that was deleted with its webhook.
//   - Full token buckets of API keys, and buckets of webhooks without a throttle.
//   - Idempotency records after a day.
//   - Former secrets that no longer sign anything.
//   - Records of persons, see removeOfPersons.
func (r *Retention) RemoveExpired(ctx context.Context) (RemoveResult, error) {
	if err := ratelimit.RemoveFullBuckets(ctx, r.store); err != nil {
		return RemoveResult{}, err
	}
	if err := delivery.RemoveThrottles(ctx, r.store); err != nil {
		return RemoveResult{}, err
	}
	if err := webhooks.ForgetFormerSecrets(ctx, r.store); err != nil {
		return RemoveResult{}, err
	}
	var p progress
	if activity.HasHeartbeatDetails(ctx) {
		// Heartbeat details of another version may be unreadable. The removal then starts from the
		// beginning.
		if err := activity.GetHeartbeatDetails(ctx, &p); err != nil {
			p = progress{}
		}
	}
	began := time.Now()
	if err := r.removeDeleted(ctx, began, &p); err != nil {
		return p.Result, err
	}
	if err := r.removePages(ctx, began, &p, "idempotency_records", &p.Result.IdempotencyRecords, retention.RemoveIdempotencyRecords); err != nil {
		return p.Result, err
	}
	if err := r.removeTombstones(ctx, began, &p); err != nil {
		return p.Result, err
	}
	if err := r.removeOfPersons(ctx, began, &p); err != nil {
		return p.Result, err
	}
	for r.keep > 0 && p.Step < len(removals) && !p.Result.Unfinished {
		step, pageBegan := removals[p.Step], time.Now()
		removed, next, err := retention.RemoveExpired(ctx, r.store, step.kind, began.Add(-r.keep), p.After)
		if err != nil {
			return p.Result, err
		}
		failpoint.Hit(failpoint.RetentionBatch)
		r.count.remove(ctx, step.name, removed)
		*step.count(&p.Result) += removed
		if p.After = next; next == "" {
			p.Step++
		}
		activity.RecordHeartbeat(ctx, p)
		p.Result.Unfinished = p.Step < len(removals) && time.Since(began) > removeTime
		if err := rest(ctx, pageBegan); err != nil {
			return p.Result, err
		}
	}
	if p.Result != (RemoveResult{}) {
		r.log.InfoContext(ctx, "removed expired rows", "deliveries", p.Result.Deliveries, "events", p.Result.Events,
			"recoveries", p.Result.Recoveries, "webhooks", p.Result.Webhooks,
			"idempotencyRecords", p.Result.IdempotencyRecords, "tombstones", p.Result.Tombstones,
			"auditEntries", p.Result.AuditEntries, "subjectRecords", p.Result.SubjectRecords,
			"subjectRequests", p.Result.SubjectRequests, "networks", p.Result.Networks,
			"firstMails", p.Result.FirstMails, "unfinished", p.Result.Unfinished)
	}
	return p.Result, nil
}

// removeDeleted removes deleted webhooks with all their rows.
func (r *Retention) removeDeleted(ctx context.Context, began time.Time, p *progress) error {
	for at := new(retention.DeletedPlace); at != nil && !p.Result.Unfinished; {
		pageBegan := time.Now()
		deliveries, webhooks, next, err := retention.RemoveDeleted(ctx, r.store, *at)
		if err != nil {
			return err
		}
		failpoint.Hit(failpoint.RetentionBatch)
		r.count.remove(ctx, "deliveries", deliveries)
		r.count.remove(ctx, "webhooks", webhooks)
		p.Result.Deliveries += deliveries
		p.Result.Webhooks += webhooks
		activity.RecordHeartbeat(ctx, *p)
		at = next
		p.Result.Unfinished = at != nil && time.Since(began) > removeTime
		if err := rest(ctx, pageBegan); err != nil {
			return err
		}
	}
	return nil
}

func (r *Retention) removeTombstones(ctx context.Context, began time.Time, p *progress) error {
	if r.keep <= 0 {
		return nil
	}
	return r.removePages(ctx, began, p, "tombstones", &p.Result.Tombstones, func(ctx context.Context, s *postgres.DB) (int, bool, error) {
		return retention.RemoveTombstones(ctx, s, began.Add(-r.keep))
	})
}

// removeOfPersons removes the results of exports, their receipts, the audit trail, and the records
// of end-user limits. These have fixed periods, regardless of the deployment's setting.
func (r *Retention) removeOfPersons(ctx context.Context, began time.Time, p *progress) error {
	for _, of := range []struct {
		name   string
		count  *int
		remove func(context.Context, *postgres.DB) (int, bool, error)
	}{
		{"subject_records", &p.Result.SubjectRecords, retention.RemoveSubjectRecords},
		{"subject_requests", &p.Result.SubjectRequests, retention.RemoveSubjectRequests},
		{"audit_entries", &p.Result.AuditEntries, retention.RemoveAuditEntries},
		{"networks", &p.Result.Networks, retention.ForgetNetworks},
		{"first_mails", &p.Result.FirstMails, retention.RemoveFirstMails},
	} {
		if err := r.removePages(ctx, began, p, of.name, of.count, of.remove); err != nil {
			return err
		}
	}
	return nil
}

// removePages removes rows page by page and counts them. The function remove reports whether there
// may be more.
func (r *Retention) removePages(
	ctx context.Context, began time.Time, p *progress, name string, count *int, remove func(context.Context, *postgres.DB) (int, bool, error),
) error {
	for whole := true; whole && !p.Result.Unfinished; {
		pageBegan := time.Now()
		removed, more, err := remove(ctx, r.store)
		if err != nil {
			return err
		}
		r.count.remove(ctx, name, removed)
		*count += removed
		activity.RecordHeartbeat(ctx, *p)
		whole = more
		p.Result.Unfinished = more && time.Since(began) > removeTime
		if err := rest(ctx, pageBegan); err != nil {
			return err
		}
	}
	return nil
}

// inPages calls page until nothing is left for now, or for about the given time. It rests after each page.
func inPages(ctx context.Context, most time.Duration, page func() (more bool, err error)) error {
	for began := time.Now(); ; {
		pageBegan := time.Now()
		if more, err := page(); err != nil || !more || time.Since(began) > most {
			return err
		}
		activity.RecordHeartbeat(ctx)
		if err := rest(ctx, pageBegan); err != nil {
			return err
		}
	}
}

// rest waits after a page, until the activity's context ends at the latest.
func rest(ctx context.Context, pageBegan time.Time) error {
	wait := time.NewTimer(min(restPerPage*time.Since(pageBegan), longestRest))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // Temporal asks which it is
	}
}
