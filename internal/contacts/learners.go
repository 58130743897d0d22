package contacts

import (
	"context"

	"earshot/ent/db"
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
