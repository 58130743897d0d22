// Package contacts keeps an organization's end-users: their traits, how identify
// fills these, and where each contact came from. README.md states the rules.
package contacts

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"

	"earshot/ent/db"
	"earshot/internal/batch"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/store"
)

// Settings are what a deployment chooses.
type Settings struct {
	// CapFree and CapPro are how many contacts an organization on these plans may have.
	CapFree, CapPro int
	// EmailHashKey keys the hash of an address by which votes and comments are found.
	EmailHashKey []byte
}

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *store.Store
	changes  *change.Runner
	settings Settings

	// What is done most is done for several callers at once.
	sightings *batch.Keyed[sighting, string, seen]
	newcomers *change.Group[newContact, db.Contact]
	learners  *change.Group[learner, db.Contact]
	imports   *imports
}

// New makes the service from its collaborators.
func New(s *store.Store, changes *change.Runner, settings Settings) *Service {
	all := &Service{store: s, changes: changes, settings: settings, imports: &imports{}}
	all.newcomers = change.NewGroup(changes, event.ContactCreated, false, all.insertNewcomers)
	all.learners = change.NewGroup(changes, event.ContactUpdated, false, all.fillLearners)
	all.sightings = batch.NewKeyed(func(of sighting) *batch.Batcher[string, seen] {
		return batch.New(change.GroupMax, change.GroupTimeout, func(ctx context.Context, ids []string) ([]seen, error) {
			return all.see(ctx, of, ids, 0)
		})
	})
	return all
}

// emailHash is what votes and comments are matched with a contact by.
func (s *Service) emailHash(address string) []byte {
	return HashEmail(s.settings.EmailHashKey, address)
}

// HashEmail is what votes and comments are matched with contacts by: an HMAC-SHA256 of
// the normalised address, by a key of the deployment.
func HashEmail(key []byte, email string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(normalEmail(email)))
	return mac.Sum(nil)
}
