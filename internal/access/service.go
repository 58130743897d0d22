// Package access knows who may do what: organizations, their members, and the API
// keys by which members act. README.md states the rules.
package access

import (
	"log/slog"

	"earshot/internal/change"
	"earshot/internal/store"
)

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store   *store.Store
	changes *change.Runner
	log     *slog.Logger
}

// New makes the service from its collaborators.
func New(s *store.Store, changes *change.Runner, log *slog.Logger) *Service {
	return &Service{store: s, changes: changes, log: log}
}
