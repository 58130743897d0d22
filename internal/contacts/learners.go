package contacts

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/store"
)

// learner is who is known and told something.
type learner struct {
	externalUserID string
	traits         Traits
}

// fillLearners is fill for those that are there, that nobody holds, and whose metadata isn't large.
func (s *Service) fillLearners(ctx context.Context, j *change.Joint, in []learner) ([]*db.Contact, error) {
	var ids []string
	caller := map[string]int{}
	for i, l := range in {
		if _, twice := caller[l.externalUserID]; !twice {
			caller[l.externalUserID], ids = i, append(ids, l.externalUserID)
		}
	}
	var known []*db.Contact
	j.LockContacts(ids, maxPlainMetadata, &known)
	if err := j.Read(ctx); err != nil {
		return nil, err
	}
	out := make([]*db.Contact, len(in))
	if len(known) == 0 {
		return out, nil
	}
	changes, rows := make([]map[string]event.Change, len(in)), make([]map[string]any, len(known))
	for n, old := range known {
		i, m := caller[*old.ExternalUserID], s.store.Client().Contact.UpdateOne(old).Mutation()
		var err error
		if changes[i], err = s.learn(m, old, in[i].traits); err != nil {
			return nil, err
		}
		rows[n] = store.Columns(old.ID.UUID(), m)
	}
	// What they are is read before their events are written, as it is for new ones.
	var learned []*db.Contact
	if err := j.UpdateContacts(rows, &learned); err != nil {
		return nil, err
	}
	if err := j.Send(ctx); err != nil {
		return nil, err
	}
	for _, c := range learned {
		i := caller[*c.ExternalUserID]
		out[i] = c
		if len(changes[i]) == 0 {
			continue
		}
		j.Made = append(j.Made, c.ID.UUID())
		err := j.Record(i, c.ID.UUID(), store.Now(), &event.ContactUpdatedPayload{Contact: eventContact(c), Changes: changes[i]})
		if err != nil {
			return nil, err
		}
	}
	j.InsertEvents(j.Made, j.Happened)
	return out, nil
}

// fill sets what is null so far and never overwrites (Identify rule 2). When
// nothing changes, only lastSeenAt advances and nothing is recorded (rule 4).
func (s *Service) fill(ctx context.Context, c *change.Change, old *db.Contact, in Traits) (*db.Contact, error) {
	update := c.Contact.UpdateOne(old)
	changes, err := s.learn(update.Mutation(), old, in)
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		next := *old
		next.LastSeenAt, _ = update.Mutation().LastSeenAt()
		if err := c.Contact.Update().Where(contact.ID(old.ID)).SetLastSeenAt(next.LastSeenAt).Exec(ctx); err != nil {
			return nil, errors.Wrap(err, "note that a contact was seen")
		}
		return &next, nil
	}
	next, err := update.Save(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "update the contact")
	}
	return next, c.Record(event.ContactUpdated, &event.ContactUpdatedPayload{
		Contact: eventContact(next), Changes: changes,
	})
}

// learn puts into a mutation what becomes of a contact, and returns which traits change.
func (s *Service) learn(m *db.ContactMutation, old *db.Contact, in Traits) (map[string]event.Change, error) {
	changes, err := s.mergeTraits(m, old, func(t trait) (any, bool, error) {
		told, _ := t.told(&in)
		if told == nil {
			return nil, false, nil
		}
		next, err := t.filled(t.known(old), told)
		return next, true, err
	})
	if err != nil {
		return nil, err
	}
	// The clock of another process may be ahead: time only advances.
	seen := later(store.Now(), old.LastSeenAt)
	m.SetLastSeenAt(seen)
	if len(changes) > 0 {
		m.SetUpdatedAt(later(seen, old.UpdatedAt))
	}
	return changes, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
