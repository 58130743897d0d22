package contacts

import (
	"context"

	"earshot/ent/db"
	"earshot/internal/batch"
	"earshot/internal/change"
	"earshot/internal/event"
)

// Alone is the service where each contact is identified by itself.
func (s *Service) Alone() *Service {
	alone := *s
	alone.newcomers = change.NewGroup(s.changes, event.ContactCreated, false,
		func(_ context.Context, _ *change.Joint, in []newContact) ([]*db.Contact, error) {
			return make([]*db.Contact, len(in)), nil
		})
	alone.sightings = batch.NewKeyed(func(sighting) *batch.Batcher[string, seen] {
		return batch.New(1, change.GroupTimeout, func(_ context.Context, ids []string) ([]seen, error) {
			return make([]seen, len(ids)), nil
		})
	})
	return &alone
}
