package access

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/store"
)

// lastUsedEvery bounds how often the use of a key is written down: more would
// turn every read into a write of the same row.
const lastUsedEvery = time.Minute

// BadKey is the problem of a key that is missing, unknown, revoked or expired. It is
// always in the same words, which tell nothing about keys.
func BadKey() error { return problem.New(problem.Unauthorized, "The API key is missing or not valid.") }

// KeysThere returns those of the SHA-256 hashes that some key has, valid or not.
func (s *Service) KeysThere(ctx context.Context, hashes [][]byte) ([][]byte, error) {
	return s.store.KeysThere(ctx, hashes)
}

// Authenticate finds who a key belongs to. An unknown, revoked or expired key
// is BadKey.
func (s *Service) Authenticate(ctx context.Context, key string) (*change.Caller, error) {
	ctx = store.System(ctx, "authentication finds the organization")
	hash := sha256.Sum256([]byte(key))
	found, err := s.store.Client().APIKey.Query().Where(apikey.Hash(hash[:])).WithUser().Only(ctx)
	if db.IsNotFound(err) {
		return nil, BadKey()
	}
	if err != nil {
		return nil, errors.Wrap(err, "look up the API key")
	}
	at := store.Now()
	if ended(found, at) {
		return nil, BadKey()
	}
	organization, err := s.store.Client().Organization.Get(ctx, found.OrganizationID)
	if err != nil {
		return nil, errors.Wrap(err, "load the key's organization")
	}
	if found.LastUsedAt == nil || at.Sub(*found.LastUsedAt) >= lastUsedEvery {
		if err := s.store.NoteKeyUse(ctx, found.ID, at); err != nil {
			// Worth a line, not a refused request.
			s.log.WarnContext(ctx, "the use of an API key isn't noted", "error", err, "keyId", found.ID)
		}
	}
	return &change.Caller{Organization: organization, User: found.Edges.User, Key: found}, nil
}
