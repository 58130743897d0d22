package subscribers

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db"
	"earshot/ent/db/subscribermail"
	"earshot/ent/db/subscriberupdate"
	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

const (
	// Window is how long what happens is gathered, from the first on, so that somebody who works
	// through a board makes one e-mail of it for each person.
	Window = 10 * time.Minute
	// lease is longer than sending one e-mail may take.
	lease = time.Minute
	// tooLate is when news is no news any more: mail servers give up then, too.
	tooLate = 72 * time.Hour
	// An e-mail that the server may take later waits as long again as it has waited, within these.
	firstWait, longestWait = 5 * time.Minute, 6 * time.Hour
)

// Pending is an e-mail that somebody has taken to send it.
type Pending = store.PendingMail

// Continue ends the window of an organization if it is over, and returns when the next e-mail or
// window is due. Nil is that there is nothing to tell any more.
func (s *Service) Continue(ctx context.Context, of publicid.Organization) (*time.Time, error) {
	scoped := store.WithOrganization(ctx, of)
	next, err := s.nextMail(scoped)
	if err != nil || next != nil && !next.After(store.Now()) {
		return next, err
	}
	err = s.changes.RunForService(ctx, of, func(ctx context.Context, c *change.Change) error {
		if err := store.RemoveTold(ctx, c.Tx, of); err != nil {
			return err
		}
		first, err := c.SubscriberUpdate.Query().Where(subscriberupdate.DigestIDIsNil()).
			Order(db.Asc(subscriberupdate.FieldCreatedAt)).Limit(1).All(ctx)
		if err != nil {
			return errors.Wrap(err, "look for what is to be told")
		}
		if len(first) == 0 {
			return nil
		}
		if over := first[0].CreatedAt.Add(Window); over.After(store.Now()) {
			if next == nil || over.Before(*next) {
				next = &over
			}
			return nil
		}
		digest, err := uuid.NewV7()
		if err != nil {
			return errors.Wrap(err, "make an id")
		}
		now := store.Now()
		next = &now
		return store.EndWindow(ctx, c.Tx, of, digest)
	})
	return next, err
}

// nextMail is when an e-mail is due; nil is that there is none.
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

// MayMail takes one of the e-mails that the deployment may send a second, and reports whether there
// was one. Pause is how long it takes until there is another one.
func (s *Service) MayMail(ctx context.Context) (may bool, pause time.Duration, err error) {
	may, err = s.store.TakeFrom(ctx, store.Bucket{ID: mailBucket, Size: s.settings.PerSecond, Refill: time.Second})
	return may, time.Second / time.Duration(s.settings.PerSecond), err
}

// mailBucket is the one bucket of the deployment's e-mails to end-users; no API key has such an id.
var mailBucket = uuid.UUID([]byte("subscriber mails"))

// Take takes the e-mail of an organization that has been due for longest; nil is that none is.
func (s *Service) Take(ctx context.Context, of publicid.Organization) (*Pending, error) {
	return s.store.TakeMail(store.WithOrganization(ctx, of), lease)
}

// Remove notes that an e-mail was sent, or that nobody is to have it.
func (s *Service) Remove(ctx context.Context, of publicid.Organization, m *Pending) error {
	ctx = store.WithOrganization(ctx, of)
	if _, err := s.store.Client().SubscriberMail.Delete().Where(subscribermail.ID(m.ID)).Exec(ctx); err != nil {
		return errors.Wrap(err, "note that an e-mail was sent")
	}
	return nil
}

// PutOff has an e-mail be tried again later.
func (s *Service) PutOff(ctx context.Context, of publicid.Organization, m *Pending) error {
	now := store.Now()
	return s.due(ctx, of, m, now.Add(min(max(now.Sub(m.CreatedAt), firstWait), longestWait)))
}

// Defer has an e-mail be tried when its first-e-mail slot begins.
func (s *Service) Defer(ctx context.Context, of publicid.Organization, m *Pending, until time.Time) error {
	return s.due(ctx, of, m, until)
}

// PutBack has an e-mail be due again at once: it wasn't this one's fault.
func (s *Service) PutBack(ctx context.Context, of publicid.Organization, m *Pending) error {
	return s.due(ctx, of, m, store.Now())
}

func (s *Service) due(ctx context.Context, of publicid.Organization, m *Pending, at time.Time) error {
	ctx = store.WithOrganization(ctx, of)
	if err := s.store.Client().SubscriberMail.Update().Where(subscribermail.ID(m.ID)).SetDueAt(at).Exec(ctx); err != nil {
		return errors.Wrap(err, "put an e-mail off")
	}
	return nil
}
