package activities

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/activity"

	"earshot/internal/mail"
	"earshot/internal/publicid"
	"earshot/internal/subscribers"
)

// MailSubscribersName is the wire name of the activity.
const MailSubscribersName = "mail_subscribers"

// mailingTime is the approximate duration of one activity. Many e-mails therefore take few steps in
// the run's history.
const mailingTime = 10 * time.Second

// Subscribers e-mails end-users about changes to their requests.
type Subscribers struct {
	subscribers *subscribers.Service
	mailer      *mail.Mailer
	counts      *Counts
}

// NewSubscribers makes the activity.
func NewSubscribers(s *subscribers.Service, m *mail.Mailer, counts *Counts) *Subscribers {
	return &Subscribers{s, m, counts}
}

// SubscribersParams names the organization of the end-users.
type SubscribersParams struct {
	Organization publicid.Organization `json:"organization"`
}

// SubscribersResult says when to continue: immediately if More is set, otherwise at Due. Nothing is
// left if both are empty.
type SubscribersResult struct {
	Due  *time.Time `json:"due,omitempty"`
	More bool       `json:"more,omitempty"`
}

// MailSubscribers sends due e-mails one after the other for about mailingTime, at the deployment's
// rate. If it is cut off, the current e-mail is due again when its lease ends, with the same
// Message-ID.
func (s *Subscribers) MailSubscribers(ctx context.Context, p SubscribersParams) (SubscribersResult, error) {
	turn := false
	for began := time.Now(); time.Since(began) < mailingTime; {
		activity.RecordHeartbeat(ctx)
		next, err := s.subscribers.Continue(ctx, p.Organization)
		if err != nil || next == nil || next.After(time.Now()) {
			return SubscribersResult{Due: next}, err
		}
		if !turn {
			var pause time.Duration
			if turn, pause, err = s.subscribers.MayMail(ctx); err != nil {
				return SubscribersResult{}, err
			}
			if !turn {
				pauseFor(ctx, pause)
				continue
			}
		}
		sent, err := s.sendOne(ctx, p.Organization)
		if err != nil {
			return SubscribersResult{}, err
		}
		turn = !sent // an e-mail that isn't sent leaves its turn to the next one
	}
	return SubscribersResult{More: true}, nil
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// clockPause covers the difference between the clocks of this process and the database. An e-mail
// that is due by one clock isn't yet due by the other.
const clockPause = 50 * time.Millisecond

// sendOne sends the e-mail that has been due for longest, or drops it if it has no recipient any
// more.
func (s *Subscribers) sendOne(ctx context.Context, of publicid.Organization) (sent bool, err error) {
	taken, err := s.subscribers.Take(ctx, of)
	if err != nil {
		return false, err
	}
	if taken == nil {
		pauseFor(ctx, clockPause)
		return false, nil
	}
	letter, err := s.subscribers.Letter(ctx, of, taken)
	if err != nil {
		return false, err
	}
	if letter == nil {
		return false, s.subscribers.Remove(ctx, of, taken)
	}
	if !letter.NotBefore.IsZero() {
		s.counts.email(ctx, "deferred")
		return false, s.subscribers.Defer(ctx, of, taken, letter.NotBefore)
	}
	err = s.mailer.Send(ctx, mail.Message{
		// The id is the same for each try, so that a lost answer only leads to a duplicate e-mail.
		ID: taken.ID.String(), To: letter.To, Subject: letter.Subject, Text: letter.Text, HTML: letter.HTML, Unsubscribe: letter.Unsubscribe,
	})
	return true, s.sent(ctx, of, taken, err)
}

// sent records the result of an e-mail.
func (s *Subscribers) sent(ctx context.Context, of publicid.Organization, taken *subscribers.Pending, err error) error {
	switch {
	case err == nil:
		s.counts.email(ctx, "sent")
		return s.subscribers.Remove(ctx, of, taken)
	case errors.Is(err, mail.ErrNotConfigured):
		s.counts.email(ctx, "not_configured")
		return s.subscribers.Remove(ctx, of, taken)
	case mail.UnknownRecipient(err):
		s.counts.email(ctx, "refused")
		if err := s.subscribers.SuppressHash(ctx, taken.EmailHash); err != nil {
			return err
		}
		return s.subscribers.Remove(ctx, of, taken)
	case mail.Permanent(err) && !mail.RefusesSender(err):
		s.counts.email(ctx, "refused")
		return s.subscribers.Remove(ctx, of, taken)
	case mail.Refused(err):
		// The server accepts other e-mails. This one may succeed later, for example after a full
		// mailbox was emptied.
		s.counts.email(ctx, "failed")
		return s.subscribers.PutOff(ctx, of, taken)
	}
	s.counts.email(ctx, "failed")
	if again := s.subscribers.PutBack(ctx, of, taken); again != nil {
		return errors.Join(err, again)
	}
	return errors.Wrap(err, "tell end-users")
}
