// Package access knows who may do what: organizations, their members, and the API
// keys by which members act. README.md states the rules.
package access

import (
	"context"
	"crypto/sha256"
	"log/slog"

	"github.com/go-faster/errors"

	"earshot/internal/batch"
	"earshot/internal/change"
	"earshot/internal/store"
)

// Service offers the use cases. It is safe for concurrent use.
type Service struct {
	store   *store.Store
	changes *change.Runner
	log     *slog.Logger
	// callers are looked up together for keys that are used at once.
	callers *batch.Batcher[[sha256.Size]byte, *change.Caller]
}

// New makes the service from its collaborators.
func New(s *store.Store, changes *change.Runner, log *slog.Logger) *Service {
	all := &Service{store: s, changes: changes, log: log}
	all.callers = batch.New(callersMax, callersTimeout, all.findCallers)
	return all
}

// asOperator makes a change in the organization of the context, whatever its billing state.
func (s *Service) asOperator(ctx context.Context, fn func(ctx context.Context, c *change.Change) error) error {
	of, err := s.store.Client().Organization.Query().Only(ctx)
	if err != nil {
		return errors.Wrap(err, "load the organization")
	}
	return s.changes.RunForService(ctx, of.ID, fn)
}
