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
	"earshot/internal/postgres"
)

// Settings are the settings of a deployment.
type Settings struct {
	// PublicOrigin is the origin of the public boards. Without it, no e-mails are sent.
	PublicOrigin string
	// PerSecond is the maximum number of e-mails per second, across all processes.
	PerSecond int
	// EmailHashKey keys the hashes of addresses, which identify recipients.
	EmailHashKey []byte
}

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *postgres.DB
	changes  *change.Runner
	settings Settings
	// tokenKey is derived from EmailHashKey, which is the same in all processes and never changes. Links
	// in old e-mails therefore stay valid.
	tokenKey  []byte
	templates map[string]*digestTemplate
}

// New makes the service from its collaborators.
func New(s *postgres.DB, changes *change.Runner, settings Settings) (*Service, error) {
	settings.PublicOrigin = strings.TrimSuffix(settings.PublicOrigin, "/")
	templates, err := loadTemplates()
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, settings.EmailHashKey, nil, "earshot preferences", sha256.Size)
	if err != nil {
		panic(err) // HKDF cannot fail for 32 bytes
	}
	return &Service{store: s, changes: changes, settings: settings, tokenKey: key, templates: templates}, nil
}

func (s *Service) emailHash(address string) []byte {
	return contacts.HashEmail(s.settings.EmailHashKey, address)
}
