package subscribers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

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

// unchosen is what holds for who has chosen nothing: what they agreed to is to hear what becomes of
// what they wanted, and that is no newsletter.
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

// token is what stands in links to a contact's choices. It is made of the contact and its address, so
// nobody else can make one, it is kept nowhere, and it ends when the contact gets another address,
// whose mailbox may be somebody else's.
func (s *Service) token(of publicid.Contact, hash []byte) string {
	raw := of.UUID()
	mac := hmac.New(sha256.New, s.tokenKey)
	mac.Write(raw[:])
	mac.Write(hash)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(raw[:]))
}

// holder is the hash of the address of who has a token. One that isn't of a contact that is there is
// problem.NotFound.
func (s *Service) holder(ctx context.Context, client *db.ContactClient, token string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != len(uuid.UUID{})+sha256.Size {
		return nil, problem.Missing("link")
	}
	id := publicid.Of[publicid.Contact](uuid.UUID(raw[:len(uuid.UUID{})]))
	found, err := client.Query().Where(contact.ID(id), contact.EmailHashNotNil()).Only(ctx)
	if err != nil && !db.IsNotFound(err) {
		return nil, errors.Wrap(err, "load the contact")
	}
	if err != nil || !hmac.Equal([]byte(token), []byte(s.token(id, *found.EmailHash))) {
		return nil, problem.Missing("link")
	}
	return *found.EmailHash, nil
}

// Chosen is what the holder of a token has chosen in the organization of the context. A token of
// nobody who is there is problem.NotFound.
func (s *Service) Chosen(ctx context.Context, token string) (Choice, error) {
	hash, err := s.holder(ctx, s.store.Client().Contact, token)
	if err != nil {
		return Choice{}, err
	}
	return chosenBy(ctx, s.store.Client(), hash)
}

// Choose keeps what the holder of a token chooses, whatever the organization's billing state. Whoever
// chooses something wants e-mails again, also where they had bounced.
func (s *Service) Choose(ctx context.Context, token string, in Choice) error {
	return s.changes.RunUnpaid(ctx, func(c *change.Change) error {
		hash, err := s.holder(ctx, c.Contact, token)
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
		hash, err := s.holder(ctx, c.Contact, token)
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

// OptIn notes that the person with an address, which was shown to be theirs, wants to know what becomes
// of what they want, in the transaction of its caller.
func (s *Service) OptIn(ctx context.Context, c *change.Change, email, language string) error {
	hash := s.emailHash(email)
	chosen, err := chosenBy(ctx, c.Client(), hash)
	if err != nil {
		return err
	}
	if err := store.Unsuppress(ctx, c.Tx, hash); err != nil {
		return err
	}
	chosen.StatusUpdates, chosen.Language = true, language
	return put(ctx, c, hash, chosen)
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
