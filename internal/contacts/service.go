// Package contacts stores an organization's end-users, their traits and their provenance, and
// merges new traits by identify. README.md states the rules.
package contacts

import (
	"crypto/hmac"
	"crypto/sha256"

	"earshot/internal/change"
	"earshot/internal/postgres"
)

// Settings are the options of a deployment.
type Settings struct {
	// CapFree and CapPro are the maximum numbers of contacts on these plans.
	CapFree, CapPro int
	// EmailHashKey is the key of HashEmail.
	EmailHashKey []byte
}

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *postgres.DB
	changes  *change.Runner
	settings Settings

	// identities runs the most frequent operation for several callers together.
	identities change.Batch[wantedContact, identity]
}

// New makes the service from its collaborators.
func New(s *postgres.DB, changes *change.Runner, settings Settings) *Service {
	all := &Service{store: s, changes: changes, settings: settings}
	all.identities = change.NewBatch(changes, change.Write[wantedContact, identity]{
		Apply: all.identify, Alone: wantedContact.comesAlone, SkipsHeld: true,
	})
	return all
}

// emailHash is HashEmail with the deployment's key.
func (s *Service) emailHash(address string) []byte {
	return HashEmail(s.settings.EmailHashKey, address)
}

// HashEmail returns the HMAC-SHA256 of the normalised address, with a key of the deployment. Votes
// and comments are matched with contacts by this hash.
func HashEmail(key []byte, email string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(normalEmail(email)))
	return mac.Sum(nil)
}
