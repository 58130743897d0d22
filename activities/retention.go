package activities

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

	"earshot/internal/failpoint"
	"earshot/internal/feedback"
	"earshot/internal/store"
)

const (
	// removeTime is how long one run removes. Runs come every hour, so at that the retention
	// is at work three quarters of the time, and an activity's end is before the next run.
	removeTime = 45 * time.Minute
	// restPerPage is how many times as long as a page took the retention rests after it: it
	// takes half a processor of Postgres at most, and leaves what runs beside it the other
	// half of the time.
	restPerPage = 1
	// longestRest is for pages that take long because Postgres is busy; it has to be less
	// than the activity's heartbeat timeout.
	longestRest = 5 * time.Second
)

// Retention removes what is older than the deployment keeps.
type Retention struct {
	store    *store.Store
	feedback *feedback.Service
	keep     time.Duration
	count    *Counts
	log      *slog.Logger
}

// NewRetention makes the activity. Rows are kept for so long; 0 is for ever.
func NewRetention(s *store.Store, f *feedback.Service, keep time.Duration, counts *Counts, log *slog.Logger) *Retention {
	return &Retention{store: s, feedback: f, keep: keep, count: counts, log: log}
}

// RemoveResult counts what was removed.
type RemoveResult struct {
	Deliveries int `json:"deliveries"`
	Events     int `json:"events"`
	Recoveries int `json:"recoveries"`
	// Webhooks that were deleted, whose deliveries count above.
	Webhooks int `json:"webhooks,omitempty"`
	// IdempotencyRecords count for a day, whatever is kept.
	IdempotencyRecords int `json:"idempotencyRecords,omitempty"`
	// Tombstones of what was deleted, for lists that are kept in step with.
	Tombstones int `json:"tombstones,omitempty"`
	// AuditEntries and SubjectRequests, receipts of exports and erasures, are kept for a year,
	// SubjectRecords, of exports, for a week.
	AuditEntries    int `json:"auditEntries,omitempty"`
	SubjectRecords  int `json:"subjectRecords,omitempty"`
	SubjectRequests int `json:"subjectRequests,omitempty"`
	// Networks of submissions are forgotten after a month, FirstMails, slots of first e-mails, after a year.
	Networks   int `json:"networks,omitempty"`
	FirstMails int `json:"firstMails,omitempty"`
	// Unfinished says that the time was up before everything was looked at.
	Unfinished bool `json:"unfinished,omitempty"`
}

// progress is the heartbeat of a removal: what the next try needs to know when
// this one is cut off.
type progress struct {
	// Step is the kind that is being removed, After the place in it.
	Step   int          `json:"step"`
	After  string       `json:"after,omitempty"`
	Result RemoveResult `json:"result"`
}

// removals are the kinds in their order: a delivery before the event that it
// refers to.
var removals = []struct {
	kind  store.Expired
	name  string
	count func(*RemoveResult) *int
}{
	{store.ExpiredDeliveries, "deliveries", func(r *RemoveResult) *int { return &r.Deliveries }},
	{store.ExpiredEvents, "events", func(r *RemoveResult) *int { return &r.Events }},
	{store.ExpiredRecoveries, "recoveries", func(r *RemoveResult) *int { return &r.Recoveries }},
}

// RemoveExpired removes deliveries that ended, with their attempts, events that
// nothing refers to any more, and recoveries that ended, when they are old. A try
// goes on where the one before it was cut off. What was deleted with its webhook goes
// whatever is kept, and so do buckets of API keys that are full again and of webhooks without a
// throttle, the records of idempotency keys after a day, and secrets of webhooks that nothing is
// signed with any more. Tombstones go when they are old.
func (r *Retention) RemoveExpired(ctx context.Context) (RemoveResult, error) {
	if err := r.store.RemoveFullBuckets(ctx); err != nil {
		return RemoveResult{}, err
	}
	if err := r.store.RemoveThrottles(ctx); err != nil {
		return RemoveResult{}, err
	}
	if err := r.store.ForgetFormerSecrets(ctx); err != nil {
		return RemoveResult{}, err
	}
	var p progress
	if activity.HasHeartbeatDetails(ctx) {
		// What can't be read was another version's; then it begins anew.
		if err := activity.GetHeartbeatDetails(ctx, &p); err != nil {
			p = progress{}
		}
	}
	began := time.Now()
	if err := r.removeDeleted(ctx, began, &p); err != nil {
		return p.Result, err
	}
	if err := r.removePages(ctx, began, &p, "idempotency_records", &p.Result.IdempotencyRecords, r.store.RemoveIdempotencyRecords); err != nil {
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
		removed, next, err := r.store.RemoveExpired(ctx, step.kind, began.Add(-r.keep), p.After)
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
		r.log.InfoContext(ctx, "removed what is expired", "deliveries", p.Result.Deliveries, "events", p.Result.Events,
			"recoveries", p.Result.Recoveries, "webhooks", p.Result.Webhooks,
			"idempotencyRecords", p.Result.IdempotencyRecords, "tombstones", p.Result.Tombstones,
			"auditEntries", p.Result.AuditEntries, "subjectRecords", p.Result.SubjectRecords,
			"subjectRequests", p.Result.SubjectRequests, "networks", p.Result.Networks,
			"firstMails", p.Result.FirstMails, "unfinished", p.Result.Unfinished)
	}
	// Nothing that is removed, but the only thing else that has to be done now and then, by
	// one process: programs of a release before write rows without a hash while they run.
	return p.Result, r.feedback.HashAuthors(ctx)
}

// removeDeleted removes webhooks that were deleted, with all that is theirs.
func (r *Retention) removeDeleted(ctx context.Context, began time.Time, p *progress) error {
	for at := new(store.DeletedPlace); at != nil && !p.Result.Unfinished; {
		pageBegan := time.Now()
		deliveries, webhooks, next, err := r.store.RemoveDeleted(ctx, *at)
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
	return r.removePages(ctx, began, p, "tombstones", &p.Result.Tombstones, func(ctx context.Context) (int, bool, error) {
		return r.store.RemoveTombstones(ctx, began.Add(-r.keep))
	})
}

// removeOfPersons removes what exports have found, then receipts and the audit trail, and what limits have
// noted of end-users, whatever the deployment keeps of deliveries.
func (r *Retention) removeOfPersons(ctx context.Context, began time.Time, p *progress) error {
	for _, of := range []struct {
		name   string
		count  *int
		remove func(context.Context) (int, bool, error)
	}{
		{"subject_records", &p.Result.SubjectRecords, r.store.RemoveSubjectRecords},
		{"subject_requests", &p.Result.SubjectRequests, r.store.RemoveSubjectRequests},
		{"audit_entries", &p.Result.AuditEntries, r.store.RemoveAuditEntries},
		{"networks", &p.Result.Networks, r.store.ForgetNetworks},
		{"first_mails", &p.Result.FirstMails, r.store.RemoveFirstMails},
	} {
		if err := r.removePages(ctx, began, p, of.name, of.count, of.remove); err != nil {
			return err
		}
	}
	return nil
}

// removePages removes rows page by page, and counts them. Remove says whether there may be more.
func (r *Retention) removePages(
	ctx context.Context, began time.Time, p *progress, name string, count *int, remove func(context.Context) (int, bool, error),
) error {
	for whole := true; whole && !p.Result.Unfinished; {
		pageBegan := time.Now()
		removed, more, err := remove(ctx)
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

// rest waits after a page, and not longer than the activity lasts.
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
