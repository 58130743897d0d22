package subscribers

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/ent/db/subscribermail"
	"earshot/ent/db/subscriberupdate"
	"earshot/internal/change"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/ratelimit"
)

const (
	// Window is the time during which updates are collected, beginning with the first. A member who
	// works through a board thus causes one e-mail per recipient.
	Window = 10 * time.Minute
	// lease is longer than the sending of one e-mail may take.
	lease = time.Minute
	// tooLate is the age at which an e-mail is dropped. Mail servers give up after a similar time.
	tooLate = 72 * time.Hour
	// After a temporary failure, an e-mail waits as long again as it has waited, within these limits.
	firstWait, longestWait = 5 * time.Minute, 6 * time.Hour
)

// Pending is an e-mail that a worker has leased for sending.
type Pending = pendingMail

// Continue ends the window of an organization if it is over, and returns the time of the next e-mail or
// window end. It returns nil if no updates are left.
func (s *Service) Continue(ctx context.Context, of publicid.Organization) (*time.Time, error) {
	scoped := postgres.WithOrganization(ctx, of)
	next, err := s.nextMail(scoped)
	if err != nil || next != nil && !next.After(postgres.Now()) {
		return next, err
	}
	err = s.changes.RunForService(ctx, of, func(ctx context.Context, c *change.Change) error {
		if err := removeTold(ctx, c.Tx); err != nil {
			return err
		}
		first, err := c.SubscriberUpdate.Query().Where(subscriberupdate.DigestIDIsNil()).
			Order(db.Asc(subscriberupdate.FieldCreatedAt)).Limit(1).All(ctx)
		if err != nil {
			return errors.Wrap(err, "look for the oldest update")
		}
		if len(first) == 0 {
			return nil
		}
		if over := first[0].CreatedAt.Add(Window); over.After(postgres.Now()) {
			if next == nil || over.Before(*next) {
				next = &over
			}
			return nil
		}
		digest, err := uuid.NewV7()
		if err != nil {
			return errors.Wrap(err, "make an id")
		}
		now := postgres.Now()
		next = &now
		return endWindow(ctx, c.Tx, digest)
	})
	return next, err
}

// nextMail returns the time of the next e-mail, or nil if there is none.
func (s *Service) nextMail(ctx context.Context) (*time.Time, error) {
	found, err := s.store.Client().SubscriberMail.Query().Order(db.Asc(subscribermail.FieldDueAt)).Limit(1).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for the next e-mail")
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0].DueAt, nil
}

// MayMail takes a token from the deployment's e-mail rate and reports whether there was one. The result
// pause is the time until the next token.
func (s *Service) MayMail(ctx context.Context) (may bool, pause time.Duration, err error) {
	may, err = ratelimit.TakeFrom(ctx, s.store, ratelimit.Bucket{ID: mailBucket, Size: s.settings.PerSecond, Refill: time.Second})
	return may, time.Second / time.Duration(s.settings.PerSecond), err
}

// mailBucket is the id of the deployment's token bucket for e-mails to end-users. No API key has such an
// id.
var mailBucket = uuid.UUID([]byte("subscriber mails"))

// Take leases the organization's e-mail that has been due longest. It returns nil if none is due.
func (s *Service) Take(ctx context.Context, of publicid.Organization) (*Pending, error) {
	return takeMail(postgres.WithOrganization(ctx, of), s.store, lease)
}

// Remove removes an e-mail that was sent or is no longer wanted.
func (s *Service) Remove(ctx context.Context, of publicid.Organization, m *Pending) error {
	ctx = postgres.WithOrganization(ctx, of)
	if _, err := s.store.Client().SubscriberMail.Delete().Where(subscribermail.ID(m.ID)).Exec(ctx); err != nil {
		return errors.Wrap(err, "note that an e-mail was sent")
	}
	return nil
}

// PutOff schedules another try of an e-mail after a temporary failure.
func (s *Service) PutOff(ctx context.Context, of publicid.Organization, m *Pending) error {
	now := postgres.Now()
	return s.due(ctx, of, m, now.Add(min(max(now.Sub(m.CreatedAt), firstWait), longestWait)))
}

// Defer schedules an e-mail for the start of its first-e-mail slot.
func (s *Service) Defer(ctx context.Context, of publicid.Organization, m *Pending, until time.Time) error {
	return s.due(ctx, of, m, until)
}

// PutBack makes an e-mail due again immediately, after a failure that this e-mail did not cause.
func (s *Service) PutBack(ctx context.Context, of publicid.Organization, m *Pending) error {
	return s.due(ctx, of, m, postgres.Now())
}

func (s *Service) due(ctx context.Context, of publicid.Organization, m *Pending, at time.Time) error {
	ctx = postgres.WithOrganization(ctx, of)
	if err := s.store.Client().SubscriberMail.Update().Where(subscribermail.ID(m.ID)).SetDueAt(at).Exec(ctx); err != nil {
		return errors.Wrap(err, "put an e-mail off")
	}
	return nil
}

// Sweep finds organizations without a run whose updates or e-mails for end-users are overdue. A run that
// waits for the end of a window, or for a mail server, is left alone.
func (s *Service) Sweep() jobs.Sweep { return jobs.Sweep{Rows: s.overdue} }

const overdueSQL = `
SELECT organization_id FROM (
  SELECT organization_id FROM subscriber_updates WHERE digest_id IS NULL AND created_at <= now() - make_interval(secs => $1)
  UNION SELECT organization_id FROM subscriber_mails WHERE due_at <= now() - make_interval(secs => $1)
) due WHERE organization_id > $2::uuid ORDER BY organization_id LIMIT $3`

func (s *Service) overdue(ctx context.Context, grace time.Duration, after jobs.Overdue, limit int) ([]jobs.Overdue, error) {
	return postgres.CollectAcross(ctx, s.store.Across("find organizations with something to tell"), overdueSQL, func(row pgx.CollectableRow) (o jobs.Overdue, err error) {
		var of publicid.Organization
		err = row.Scan(&of)
		o.Request, o.Row = change.NotifySubscribers(of), of.UUID()
		return o, err
	}, grace.Seconds(), after.Row.String(), limit)
}
