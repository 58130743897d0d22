package access

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/ent/db/predicate"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// The number of keys is bounded, because each key has its own request budget.
const (
	// maxMemberKeys leaves room for one key per program. Without this cap, one member could use up
	// the organization's keys, and its owners could create none.
	maxMemberKeys = 20
	// maxOrganizationKeys is the maximum of 50 members, or one key for each of 1,000 members.
	maxOrganizationKeys = 1000
	// maxRotatedKeys bounds a member's keys including the old ones in their overlap. Each of 20
	// keys can be rotated four times within an overlap. Members who had 100 keys before the cap was
	// introduced can still rotate a key.
	maxRotatedKeys = 100
)

// isValid selects keys that have not ended.
func isValid(at time.Time) predicate.APIKey {
	return apikey.And(apikey.RevokedAtIsNil(),
		apikey.Or(apikey.ExpiresAtIsNil(), apikey.ExpiresAtGT(at)),
		apikey.Or(apikey.SupersededAtIsNil(), apikey.SupersededAtGT(at)))
}

// mustHaveRoomForKey counts keys under the lock of members. A rotated key doesn't count, because
// its replacement does.
func mustHaveRoomForKey(ctx context.Context, c *change.Change, of publicid.User) error {
	counted := c.APIKey.Query().Where(isValid(postgres.Now()), apikey.SupersededAtIsNil())
	if err := mustBeFewer(ctx, counted.Clone().Where(apikey.UserID(of)), maxMemberKeys); err != nil {
		return err
	}
	return mustBeFewer(ctx, counted, maxOrganizationKeys)
}

// mustHaveRoomToRotate doesn't count the rotated key. It ignores the organization's cap, because a
// member must be able to replace a leaked key regardless of the other members' keys.
func mustHaveRoomToRotate(ctx context.Context, c *change.Change, old *db.APIKey) error {
	counted := c.APIKey.Query().Where(isValid(postgres.Now()), apikey.UserID(old.UserID), apikey.IDNEQ(old.ID))
	return mustBeFewer(ctx, counted, maxRotatedKeys)
}

func mustBeFewer(ctx context.Context, counted *db.APIKeyQuery, limit int) error {
	n, err := counted.Count(ctx)
	if err != nil {
		return errors.Wrap(err, "count API keys")
	}
	if n >= limit {
		return problem.OverPlan("apiKey", limit, n)
	}
	return nil
}
