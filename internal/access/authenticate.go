package access

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// lastUsedEvery bounds how often the use of a key is written down: more would
// turn every read into a write of the same row.
const lastUsedEvery = time.Minute

// BadKey is the problem of a key that is missing, unknown, revoked or expired. It is
// always in the same words, which tell nothing about keys.
func BadKey() error { return problem.New(problem.Unauthorized, "The API key is missing or not valid.") }

// Authenticate finds who a key belongs to. An unknown, revoked or expired key
// is BadKey.
func (s *Service) Authenticate(ctx context.Context, key string) (*change.Caller, error) {
	caller, err := s.callers.Do(ctx, sha256.Sum256([]byte(key)))
	if err != nil {
		return nil, errors.Wrap(err, "look up the API key")
	}
	if caller == nil {
		return nil, BadKey()
	}
	return caller, nil
}

// Reauthenticate is BadKey where the key of the caller in the context has ended meanwhile, for
// requests that wait.
func (s *Service) Reauthenticate(ctx context.Context) error {
	caller, err := s.callers.Do(ctx, [sha256.Size]byte(change.CallerOf(ctx).Key.Hash))
	if err != nil {
		return errors.Wrap(err, "look up the API key")
	}
	if caller == nil {
		return BadKey()
	}
	return nil
}

const (
	// callersMax is as many keys as there are connections, and so requests at once. However
	// many keys somebody makes up, they cost one connection, and nobody with a valid key waits
	// longer than for two look-ups.
	callersMax = 2048
	// callersTimeout is some thousand times what a look-up takes.
	callersTimeout = 5 * time.Second
)

// findCallers is Authenticate for the hashes of keys that are used at once; nil is a bad key.
func (s *Service) findCallers(ctx context.Context, hashes [][sha256.Size]byte) ([]*change.Caller, error) {
	given := make([][]byte, len(hashes))
	for i := range hashes {
		given[i] = hashes[i][:]
	}
	keys, organizations, err := s.store.KeysWithOwners(ctx, given)
	if err != nil {
		return nil, err
	}
	at := store.Now()
	var used []publicid.APIKey
	valid := make(map[[sha256.Size]byte]*change.Caller, len(keys))
	for _, k := range keys {
		caller := &change.Caller{Organization: organizations[k.OrganizationID], User: k.Edges.User, Key: k}
		// They are nil where they were deleted just now. Who is no member has no key that counts.
		if ended(k, at) || caller.Organization == nil || caller.User == nil || caller.User.Role == nil {
			continue
		}
		valid[[sha256.Size]byte(k.Hash)] = caller
		if k.LastUsedAt == nil || at.Sub(*k.LastUsedAt) >= lastUsedEvery {
			used = append(used, k.ID)
		}
	}
	if len(used) > 0 {
		if err := s.store.NoteKeyUses(ctx, used, at); err != nil {
			// Worth a line, not a refused request.
			s.log.WarnContext(ctx, "the use of API keys isn't noted", "error", err, "keyIds", used)
		}
	}
	callers := make([]*change.Caller, len(hashes))
	for i, hash := range hashes {
		callers[i] = valid[hash]
	}
	return callers, nil
}
