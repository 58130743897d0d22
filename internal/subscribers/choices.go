package subscribers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/subscription"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Choice is a person's choice of e-mails.
type Choice struct {
	// StatusUpdates covers posts that the person wrote, voted for or commented on. Changelog covers the
	// whole changelog.
	StatusUpdates, Changelog bool
	// Language is one of Languages.
	Language string
}

// unchosen is the choice of a person who has made none. The opt-in of a form covers updates about the
// person's own posts, and no newsletter, so Changelog is off.
func unchosen() Choice { return Choice{StatusUpdates: true, Language: Languages[0]} }

// chosenBy returns the choice of the person with an address hash.
func chosenBy(ctx context.Context, client *db.Client, hash []byte) (Choice, error) {
	found, err := client.Subscription.Query().Where(subscription.EmailHash(hash)).Only(ctx)
	if db.IsNotFound(err) {
		return unchosen(), nil
	}
	if err != nil {
		return Choice{}, errors.Wrap(err, "load the person's choices")
	}
	return Choice{found.StatusUpdates, found.Changelog, known(found.Language)}, nil
}

func known(language string) string {
	if slices.Contains(Languages, language) {
		return language
	}
	return Languages[0]
}

// token returns the token in links to the preferences of an address in an organization. It is derived
// from both with a secret key, so it cannot be forged and is never stored.
func (s *Service) token(of publicid.Organization, hash []byte) string {
	raw := of.UUID()
	mac := hmac.New(sha256.New, s.tokenKey)
	mac.Write(raw[:])
	mac.Write(hash)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(slices.Clone(hash)))
}

// holder returns the address hash of a token. If no contact of the organization has the address, it is
// problem.NotFound. If the query locks the contacts, an erasure waits for this transaction.
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
	return s.holder(ctx, c.Caller.Organization.ID, c.Contact.Query().ForShare(postgres.KeyShare), token)
}

// Chosen returns the choice of a token's holder in the organization of the context. A token without a
// contact is problem.NotFound.
func (s *Service) Chosen(ctx context.Context, token string) (Choice, error) {
	hash, err := s.holder(ctx, change.CallerOf(ctx).Organization.ID, s.store.Client().Contact.Query(), token)
	if err != nil {
		return Choice{}, err
	}
	return chosenBy(ctx, s.store.Client(), hash)
}

// Choose stores the choice of a token's holder, in every billing state of the organization. A choice of
// any e-mails also ends the suppression of an address that had bounced.
func (s *Service) Choose(ctx context.Context, token string, in Choice) error {
	_, err := change.RunUnpaid(ctx, s.changes, change.Request[struct{}]{}, func(c *change.Change) (none struct{}, _ error) {
		hash, err := s.holderIn(ctx, c, token)
		if err != nil {
			return none, err
		}
		if in.StatusUpdates || in.Changelog {
			if err := unsuppress(ctx, c.Tx, hash); err != nil {
				return none, err
			}
		}
		return none, put(ctx, c, hash, in)
	})
	return err
}

// Unsubscribe turns off all e-mails to the holder of a token.
func (s *Service) Unsubscribe(ctx context.Context, token string) error {
	_, err := change.RunUnpaid(ctx, s.changes, change.Request[struct{}]{}, func(c *change.Change) (none struct{}, _ error) {
		hash, err := s.holderIn(ctx, c, token)
		if err != nil {
			return none, err
		}
		old, err := chosenBy(ctx, c.Client(), hash)
		if err != nil {
			return none, err
		}
		return none, put(ctx, c, hash, Choice{Language: old.Language})
	})
	return err
}

// OptIn records the opt-in of a person with a verified address, in the caller's transaction. The
// parameter at is the time of the opt-in, which may have waited for moderation. A later choice of the
// person takes precedence.
func (s *Service) OptIn(ctx context.Context, c *change.Change, email, language string, at time.Time) error {
	hash := s.emailHash(email)
	chosen, err := c.Subscription.Query().Where(subscription.EmailHash(hash)).ForUpdate(postgres.NoKeyUpdate).Only(ctx)
	switch {
	case db.IsNotFound(err):
		// A concurrent choice takes precedence.
		err = c.Subscription.Create().SetEmailHash(hash).SetStatusUpdates(true).SetLanguage(known(language)).SetCreatedAt(at).SetUpdatedAt(at).
			OnConflict(onePerAddress, sql.ResolveWithIgnore()).Exec(ctx)
	case err == nil && !chosen.UpdatedAt.After(at):
		err = c.Subscription.UpdateOne(chosen).SetStatusUpdates(true).SetLanguage(known(language)).SetUpdatedAt(at).Exec(ctx)
	}
	if err != nil {
		return errors.Wrap(err, "note the opt-in")
	}
	return nil
}

// Reached ends the suppression of an address, because the link of an e-mail to it was used.
func (s *Service) Reached(ctx context.Context, c *change.Change, email string) error {
	return unsuppress(ctx, c.Tx, s.emailHash(email))
}

// onePerAddress is the unique key of the choices.
var onePerAddress = sql.ConflictColumns(subscription.FieldOrganizationID, subscription.FieldEmailHash)

func put(ctx context.Context, c *change.Change, hash []byte, in Choice) error {
	now := postgres.Now()
	err := c.Subscription.Create().SetEmailHash(hash).
		SetStatusUpdates(in.StatusUpdates).SetChangelog(in.Changelog).SetLanguage(known(in.Language)).SetCreatedAt(now).SetUpdatedAt(now).
		OnConflict(onePerAddress, sql.ResolveWith(func(row *sql.UpdateSet) {
			row.SetExcluded(subscription.FieldStatusUpdates)
			row.SetExcluded(subscription.FieldChangelog)
			row.SetExcluded(subscription.FieldLanguage)
			row.SetExcluded(subscription.FieldUpdatedAt)
		})).Exec(ctx)
	if err != nil {
		return errors.Wrap(err, "store the person's choices")
	}
	return nil
}
