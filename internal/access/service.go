// Package access decides who may do what. It manages organizations, their members, and the API keys
// by which members act. README.md states the rules.
package access

import (
	"context"
	"crypto/sha256"
	"log/slog"

	"github.com/go-faster/errors"

	"earshot/internal/batch"
	"earshot/internal/change"
	"earshot/internal/postgres"
)

// Service implements the use cases. It is safe for concurrent use.
type Service struct {
	store   *postgres.DB
	changes *change.Runner
	log     *slog.Logger
	// callers batches the look-ups of keys that are used at the same time.
	callers batch.Batcher[[sha256.Size]byte, *change.Caller]
}

// New creates the service.
func New(s *postgres.DB, changes *change.Runner, log *slog.Logger) *Service {
	all := &Service{store: s, changes: changes, log: log}
	all.callers = batch.New(callersMax, callersTimeout, all.findCallers)
	return all
}

// asOperator runs a change in the organization in the context, regardless of its billing state.
func (s *Service) asOperator(ctx context.Context, fn func(ctx context.Context, c *change.Change) error) error {
	of, err := s.store.Client().Organization.Query().Only(ctx)
	if err != nil {
		return errors.Wrap(err, "load the organization")
	}
	return s.changes.RunForService(ctx, of.ID, fn)
}
