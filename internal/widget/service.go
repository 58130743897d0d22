// Package widget has the settings of an organization's widget: its origins and its secrets. Pages of
// the origins may embed the widget. With the secrets, the organization's servers sign tokens for
// end-users. README.md states the rules.
package widget

import (
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/postgres"
	"earshot/internal/seal"
)

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *postgres.DB
	changes  *change.Runner
	contacts *contacts.Service
	secrets  *seal.Box
}

// New makes the service. The box seals the secrets.
func New(s *postgres.DB, changes *change.Runner, people *contacts.Service, secrets *seal.Box) *Service {
	return &Service{store: s, changes: changes, contacts: people, secrets: secrets}
}
