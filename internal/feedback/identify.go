package feedback

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/store"
)

// identifyTries bounds a race that takes two other requests to lose once.
const identifyTries = 10

// IdentifyContact inserts the contact with the caller's own id for it, or fills
// what is still unknown of the one that is there (specification, Identify rules
// 1 to 7); created tells which. It records contact.created, or contact.updated
// where a trait changed.
func (s *Service) IdentifyContact(ctx context.Context, externalUserID string, in Traits) (found *db.Contact, created bool, err error) {
	var bad problem.Fields
	text(&bad, "externalUserId", externalUserID, 1, maxExternalUserID)
	meta := in.check(&bad)
	if err := bad.Err(); err != nil {
		return nil, false, err
	}
	if found, err = s.seeAgain(ctx, externalUserID, in, meta); found != nil || err != nil {
		return found, false, err
	}
	err = s.change(ctx, func(c *change) error {
		// Again where another request inserted it between the two looks, and a
		// third one deleted it.
		for range identifyTries {
			if found, err = c.byExternalID(ctx, externalUserID); err != nil {
				return err
			}
			if found != nil {
				created = false
				found, err = s.fill(ctx, c, found, in, meta)
				return err
			}
			found, err = s.insertIdentified(ctx, c, externalUserID, in, meta)
			if created = found != nil; created || err != nil {
				return err
			}
		}
		return errors.Errorf("the contact came and went %d times while it was identified", identifyTries)
	})
	return found, created, err
}

// seeAgain is the whole of identify for a contact that is known already and of
// whom nothing new is told, as most are. It returns nil, and has changed nothing,
// where there is more to do. Metadata is looked at under the lock only.
func (s *Service) seeAgain(ctx context.Context, externalUserID string, in Traits, meta metadata) (*db.Contact, error) {
	caller := CallerOf(ctx)
	if err := mayWrite(caller); err != nil || len(meta) > 0 {
		return nil, err
	}
	return s.store.SeeContact(ctx, caller.Organization.ID, externalUserID, now(), store.Told{
		Email: value(in.Email) != nil, Name: value(in.Name) != nil,
		Plan: value(in.Plan) != nil, MRR: value(in.MRRCents) != nil,
	})
}

// insertIdentified returns nil when the id was taken in the meantime.
func (s *Service) insertIdentified(ctx context.Context, c *change, externalUserID string, in Traits, meta metadata) (*db.Contact, error) {
	err := s.mustHaveRoom(ctx, c)
	if problem.Is(err, problem.PlanLimit) {
		// Who is there already never meets the cap, so look again now that the
		// organization is locked.
		if again, findErr := c.byExternalID(ctx, externalUserID); again != nil || findErr != nil {
			return nil, findErr
		}
	}
	if err != nil {
		return nil, err
	}
	return s.insertContact(ctx, c, newContact{
		externalUserID: &externalUserID, traits: in, meta: meta, source: "identify", consentBasis: "sdk_identify",
	})
}

// fill sets what is null so far and never overwrites (Identify rule 2). When
// nothing changes, only lastSeenAt advances and nothing is recorded (rule 4).
func (s *Service) fill(ctx context.Context, c *change, old *db.Contact, in Traits, meta metadata) (*db.Contact, error) {
	next, changes, err := s.filled(old, in, meta)
	if err != nil {
		return nil, err
	}
	update := c.Contact.Update().Where(contact.ID(old.ID)).SetLastSeenAt(next.LastSeenAt).SetUpdatedAt(next.UpdatedAt)
	for trait := range changes {
		switch trait {
		case "email":
			update.SetEmail(*next.Email).SetEmailHash(*next.EmailHash)
		case "name":
			update.SetName(*next.Name)
		case "plan":
			update.SetPlan(*next.Plan)
		case "mrrCents":
			update.SetMrrCents(*next.MrrCents).SetCurrency(*next.Currency)
		case "metadata":
			update.SetMetadata(next.Metadata)
		}
	}
	if err := update.Exec(ctx); err != nil {
		return nil, errors.Wrap(err, "update the contact")
	}
	if len(changes) == 0 {
		return next, nil
	}
	return next, c.record(ctx, event.ContactUpdated, &event.ContactUpdatedPayload{
		Contact: eventContact(next), Changes: changes,
	})
}

// filled is what becomes of a contact that is identified now, and what of it
// changes besides the time.
func (s *Service) filled(old *db.Contact, in Traits, meta metadata) (*db.Contact, map[string]event.Change, error) {
	next, changes := *old, map[string]event.Change{}
	if fillTrait(changes, "email", &next.Email, in.Email) {
		next.EmailHash = s.emailHash(next.Email)
	}
	fillTrait(changes, "name", &next.Name, in.Name)
	fillTrait(changes, "plan", &next.Plan, in.Plan)
	// The amount and its currency are one trait.
	if fillTrait(changes, "mrrCents", &next.MrrCents, in.MRRCents) {
		fillTrait(changes, "currency", &next.Currency, in.Currency)
	}
	if err := fillMetadata(changes, &next, meta); err != nil {
		return nil, nil, err
	}
	// The clock of another process may be ahead: time only advances.
	next.LastSeenAt = later(now(), old.LastSeenAt)
	if len(changes) > 0 {
		next.UpdatedAt = later(next.LastSeenAt, old.UpdatedAt)
	}
	return &next, changes, nil
}

// fillTrait sets a trait that is null so far and notes the change.
func fillTrait[T any](changes map[string]event.Change, name string, old **T, in nullable.Nullable[T]) bool {
	v := value(in)
	if *old != nil || v == nil {
		return false
	}
	changes[name] = event.Change{From: nil, To: *v}
	*old = v
	return true
}

// fillMetadata adds the keys that are new. Too many after that is
// problem.Validation.
func fillMetadata(changes map[string]event.Change, c *db.Contact, meta metadata) error {
	if len(meta) == 0 {
		return nil
	}
	old, err := parseMetadata(c.Metadata)
	if err != nil {
		return errors.Wrap(err, "read the stored metadata")
	}
	next := old.filled(meta)
	if len(next) == len(old) {
		return nil
	}
	var bad problem.Fields
	if next.check(&bad); bad != nil {
		return bad.Err()
	}
	from := json.RawMessage(bytes.Clone(c.Metadata))
	c.Metadata = next.text()
	changes["metadata"] = event.Change{From: from, To: c.Metadata}
	return nil
}

// value is nil for a member that was left out or is null.
func value[T any](n nullable.Nullable[T]) *T {
	v, err := n.Get()
	if err != nil {
		return nil
	}
	return &v
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
