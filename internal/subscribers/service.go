// Package subscribers e-mails end-users about the posts that they wrote, voted for or commented on. It
// owns the recipients, the times and texts of the e-mails, and the recipients' choices. README.md
// states the rules.
package subscribers

import (
	"crypto/hkdf"
	"crypto/sha256"
	"strings"

	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/store"
)

// Settings are what a deployment chooses.
type Settings struct {
	// PublicOrigin is where end-users find the public boards. Without one nobody is told anything.
	PublicOrigin string
	// PerSecond is how many e-mails are sent a second, by all processes together.
	PerSecond int
	// EmailHashKey keys the hashes of addresses, by which a person is known.
	EmailHashKey []byte
}

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *store.Store
	changes  *change.Runner
	settings Settings
	// tokenKey is made of the key of the hashes, because it is the same in all processes and never
	// changes: links in old e-mails go on.
	tokenKey  []byte
	templates map[string]*digestTemplate
}

// New makes the service from its collaborators.
func New(s *store.Store, changes *change.Runner, settings Settings) (*Service, error) {
	settings.PublicOrigin = strings.TrimSuffix(settings.PublicOrigin, "/")
	templates, err := loadTemplates()
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, settings.EmailHashKey, nil, "earshot preferences", sha256.Size)
	if err != nil {
		panic(err) // a key of 32 bytes can be made
	}
	return &Service{store: s, changes: changes, settings: settings, tokenKey: key, templates: templates}, nil
}

func (s *Service) emailHash(address string) []byte {
	return contacts.HashEmail(s.settings.EmailHashKey, address)
}
