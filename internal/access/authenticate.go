package access

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// lastUsedEvery is the minimum interval between updates of a key's last use. Without it every read
// would write the same row.
const lastUsedEvery = time.Minute

// BadKey is the problem of a key that is missing, unknown, revoked or expired. The message is the
// same for all of them and reveals nothing about keys.
func BadKey() error { return problem.New(problem.Unauthorized, "The API key is missing or not valid.") }

// Authenticate returns the caller that a key belongs to. It returns BadKey for an unknown, revoked
// or expired key.
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

// Reauthenticate returns BadKey if the caller's key has ended since authentication. Waiting
// requests call it.
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
	// callersMax is the number of connections, and therefore of concurrent requests. However many
	// invented keys a client sends, they use one database connection. A valid key waits for at most
	// two look-ups.
	callersMax = 2048
	// callersTimeout is about a thousand times the duration of a look-up.
	callersTimeout = 5 * time.Second
)

// findCallers authenticates the hashes of keys that are used at the same time. Nil in the result is
// an invalid key.
func (s *Service) findCallers(ctx context.Context, hashes [][sha256.Size]byte) ([]*change.Caller, error) {
	given := make([][]byte, len(hashes))
	for i := range hashes {
		given[i] = hashes[i][:]
	}
	keys, organizations, err := keysWithOwners(ctx, s.store, given)
	if err != nil {
		return nil, err
	}
	at := postgres.Now()
	var used []publicid.APIKey
	valid := make(map[[sha256.Size]byte]*change.Caller, len(keys))
	for _, k := range keys {
		caller := &change.Caller{Organization: organizations[k.OrganizationID], User: k.Edges.User, Key: k}
		// Both are nil if they have just been deleted. A key of a removed member is invalid.
		if ended(k, at) || caller.Organization == nil || caller.User == nil || caller.User.Role == nil {
			continue
		}
		valid[[sha256.Size]byte(k.Hash)] = caller
		if k.LastUsedAt == nil || at.Sub(*k.LastUsedAt) >= lastUsedEvery {
			used = append(used, k.ID)
		}
	}
	if len(used) > 0 {
		if err := noteKeyUses(ctx, s.store, used, at); err != nil {
			// The failure is logged, but it doesn't fail the request.
			s.log.WarnContext(ctx, "the use of API keys isn't noted", "error", err, "keyIds", used)
		}
	}
	callers := make([]*change.Caller, len(hashes))
	for i, hash := range hashes {
		callers[i] = valid[hash]
	}
	return callers, nil
}
