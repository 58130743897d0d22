package subscribers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/subscription"
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Choice is what a person is told of.
type Choice struct {
	// StatusUpdates are of what they wrote, voted for, or commented on; Changelog is all of it.
	StatusUpdates, Changelog bool
	// Language is one of Languages.
	Language string
}

// unchosen is the choice of a person who has made none. The opt-in of a form covers updates about the
// person's own posts, and no newsletter, so Changelog is off.
func unchosen() Choice { return Choice{StatusUpdates: true, Language: Languages[0]} }

// chosenBy is what the person with the hash of an address has chosen.
func chosenBy(ctx context.Context, client *db.Client, hash []byte) (Choice, error) {
	found, err := client.Subscription.Query().Where(subscription.EmailHash(hash)).Only(ctx)
	if db.IsNotFound(err) {
		return unchosen(), nil
	}
	if err != nil {
		return Choice{}, errors.Wrap(err, "load what the person has chosen")
	}
	return Choice{found.StatusUpdates, found.Changelog, known(found.Language)}, nil
}

func known(language string) string {
	if slices.Contains(Languages, language) {
		return language
	}
	return Languages[0]
}

// token is what stands in links to the choices of an address in an organization. It is made of the
// two, so nobody else can make one, and it is kept nowhere.
func (s *Service) token(of publicid.Organization, hash []byte) string {
	raw := of.UUID()
	mac := hmac.New(sha256.New, s.tokenKey)
	mac.Write(raw[:])
	mac.Write(hash)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(slices.Clone(hash)))
}

// holder is the hash of the address of who has a token. One of an address that no contact of the
// organization has is problem.NotFound. Locked, it has an erasure wait.
func (s *Service) holder(ctx context.Context, of publicid.Organization, found *db.ContactQuery, token string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != 2*sha256.Size {
		return nil, problem.Missing("link")
	}
	hash := raw[:sha256.Size]
	if !hmac.Equal([]byte(token), []byte(s.token(of, hash))) {
		return nil, problem.Missing("link")
	}
	there, err := found.Where(contact.EmailHash(hash)).Order(db.Asc(contact.FieldID)).Limit(sameAddress).Select(contact.FieldID).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for the contact")
	}
	if len(there) == 0 {
		return nil, problem.Missing("link")
	}
	return hash, nil
}

// holderIn is holder in the transaction of a change.
func (s *Service) holderIn(ctx context.Context, c *change.Change, token string) ([]byte, error) {
	return s.holder(ctx, c.Caller.Organization.ID, c.Contact.Query().ForShare(store.KeyShare), token)
}

// Chosen is what the holder of a token has chosen in the organization of the context. A token of
// nobody who is there is problem.NotFound.
func (s *Service) Chosen(ctx context.Context, token string) (Choice, error) {
	hash, err := s.holder(ctx, change.CallerOf(ctx).Organization.ID, s.store.Client().Contact.Query(), token)
	if err != nil {
		return Choice{}, err
	}
	return chosenBy(ctx, s.store.Client(), hash)
}

// Choose keeps what the holder of a token chooses, whatever the organization's billing state. Whoever
// chooses something wants e-mails again, also where they had bounced.
func (s *Service) Choose(ctx context.Context, token string, in Choice) error {
	return s.changes.RunUnpaid(ctx, func(c *change.Change) error {
		hash, err := s.holderIn(ctx, c, token)
		if err != nil {
			return err
		}
		if in.StatusUpdates || in.Changelog {
			if err := store.Unsuppress(ctx, c.Tx, hash); err != nil {
				return err
			}
		}
		return put(ctx, c, hash, in)
	})
}

// Unsubscribe has the holder of a token be told of nothing any more.
func (s *Service) Unsubscribe(ctx context.Context, token string) error {
	return s.changes.RunUnpaid(ctx, func(c *change.Change) error {
		hash, err := s.holderIn(ctx, c, token)
		if err != nil {
			return err
		}
		old, err := chosenBy(ctx, c.Client(), hash)
		if err != nil {
			return err
		}
		return put(ctx, c, hash, Choice{Language: old.Language})
	})
}

// OptIn notes that the person with an address, which was shown to be theirs, wanted at a moment to know
// what becomes of what they want, in the transaction of its caller. What they chose later holds: it may
// have waited until somebody had looked at it.
func (s *Service) OptIn(ctx context.Context, c *change.Change, email, language string, at time.Time) error {
	hash := s.emailHash(email)
	chosen, err := c.Subscription.Query().Where(subscription.EmailHash(hash)).ForUpdate(store.NoKeyUpdate).Only(ctx)
	switch {
	case db.IsNotFound(err):
		// Who chooses at the same moment has the last word.
		err = c.Subscription.Create().SetEmailHash(hash).SetStatusUpdates(true).SetLanguage(known(language)).SetCreatedAt(at).SetUpdatedAt(at).
			OnConflictColumns(subscription.FieldOrganizationID, subscription.FieldEmailHash).Ignore().Exec(ctx)
	case err == nil && !chosen.UpdatedAt.After(at):
		err = c.Subscription.UpdateOne(chosen).SetStatusUpdates(true).SetLanguage(known(language)).SetUpdatedAt(at).Exec(ctx)
	}
	if err != nil {
		return errors.Wrap(err, "note the opt-in")
	}
	return nil
}

// Reached notes that an e-mail came to the address: its link was used.
func (s *Service) Reached(ctx context.Context, c *change.Change, email string) error {
	return store.Unsuppress(ctx, c.Tx, s.emailHash(email))
}

func put(ctx context.Context, c *change.Change, hash []byte, in Choice) error {
	now := store.Now()
	err := c.Subscription.Create().SetEmailHash(hash).
		SetStatusUpdates(in.StatusUpdates).SetChangelog(in.Changelog).SetLanguage(known(in.Language)).SetCreatedAt(now).SetUpdatedAt(now).
		OnConflictColumns(subscription.FieldOrganizationID, subscription.FieldEmailHash).
		Update(func(u *db.SubscriptionUpsert) {
			u.UpdateStatusUpdates().UpdateChangelog().UpdateLanguage().UpdateUpdatedAt()
		}).Exec(ctx)
	if err != nil {
		return errors.Wrap(err, "keep what the person has chosen")
	}
	return nil
}
