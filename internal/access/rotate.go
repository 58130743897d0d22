package access

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// maxKeyOverlap is a month, in seconds. A longer overlap would defeat the rotation.
const maxKeyOverlap = 30 * 24 * 60 * 60

// RotateAPIKey creates a key with the rights and the original lifetime of an old one, but none that
// ends later than the key of the request. The old key ends after the overlap in seconds (nil is a day), or earlier if it expires earlier. Rotating a
// key that has ended is problem.Conflict.
func (s *Service) RotateAPIKey(
	ctx context.Context, id publicid.APIKey, overlap *int, q change.Request[*IssuedKey],
) (*IssuedKey, error) {
	var bad problem.Fields
	lasts := bad.Overlap(overlap, maxKeyOverlap)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*IssuedKey, error) {
		by, err := lockMembers(ctx, c)
		if err != nil {
			return nil, err
		}
		old, err := onlyKey(ctx, c.APIKey.Query().Where(apikey.ID(id)).ForUpdate())
		if err != nil {
			return nil, err
		}
		at := postgres.Now()
		if err := mayRotate(c.Caller, old, at); err != nil {
			return nil, err
		}
		if err := mustHaveRoomToRotate(ctx, c, old); err != nil {
			return nil, err
		}
		in := NewAPIKey{User: old.UserID, Name: old.Name, Scope: string(old.Scope)}
		ends := at.Add(lasts)
		if old.ExpiresAt != nil {
			lifetime := at.Add(old.ExpiresAt.Sub(old.CreatedAt))
			in.ExpiresAt = &lifetime
		}
		if until := KeyEnds(by.key); until != nil && (in.ExpiresAt == nil || in.ExpiresAt.After(*until)) {
			in.ExpiresAt = until // as for a new key
		}
		if until := KeyEnds(old); until == nil || ends.Before(*until) {
			if err := c.APIKey.UpdateOne(old).SetSupersededAt(ends).Exec(ctx); err != nil {
				return nil, errors.Wrap(err, "end the old API key")
			}
		}
		creators := othersThan(old.UserID, append(creatorsOf(c, old.UserID), old.CreatedBy...))
		c.Audit("rotateApiKey", id)
		return insertKey(ctx, c.APIKey, in, origin{key: &by.key.ID, members: creators, rateLimit: old.RateLimit})
	})
}

func mayRotate(caller *change.Caller, old *db.APIKey, at time.Time) error {
	switch {
	case old.UserID != caller.User.ID:
		// Otherwise one member could act as another.
		return problem.NotYourKey.Problem()
	case old.RevokedAt != nil:
		return problem.KeyRevoked.Problem()
	case ended(old, at):
		return problem.KeyExpired.Problem()
	}
	return nil
}
