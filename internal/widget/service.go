// Package widget keeps what an organization's widget needs: the origins of the pages that may
// hold it, and the secrets with which the organization's servers sign who looks at such a page.
// README.md states the rules.
package widget

import (
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/seal"
	"earshot/internal/store"
)

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *store.Store
	changes  *change.Runner
	contacts *contacts.Service
	secrets  *seal.Box
}

// New makes the service from its collaborators. The box holds the secrets.
func New(s *store.Store, changes *change.Runner, people *contacts.Service, secrets *seal.Box) *Service {
	return &Service{store: s, changes: changes, contacts: people, secrets: secrets}
}
