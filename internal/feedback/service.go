// Package feedback keeps boards and what stands on them: posts, votes, comments, tags
// and the changelog. README.md states the rules.
package feedback

import (
	"log/slog"
	"time"

	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/store"
)

// Settings are what a deployment chooses.
type Settings struct {
	// CommentEditWindow is how long after its creation a comment can be edited;
	// 0 is for ever.
	CommentEditWindow time.Duration
	// EmailHashKey keys the hash of an author's address (contacts.HashEmail).
	EmailHashKey []byte
}

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store    *store.Store
	changes  *change.Runner
	settings Settings
	log      *slog.Logger
}

// New makes the service from its collaborators.
func New(s *store.Store, changes *change.Runner, settings Settings, log *slog.Logger) *Service {
	return &Service{store: s, changes: changes, settings: settings, log: log}
}

// emailHash is what votes and comments are matched with contacts by.
func (s *Service) emailHash(address string) []byte {
	return contacts.HashEmail(s.settings.EmailHashKey, address)
}
