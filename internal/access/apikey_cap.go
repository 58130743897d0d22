package access

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/ent/db/predicate"
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Each key has a budget of requests of its own, so their number is bounded.
const (
	// maxMemberKeys is more than somebody has programs. Without it one member could use up the
	// organization's keys, and its owners could make none.
	maxMemberKeys = 20
	// maxOrganizationKeys is what 50 members have at most, or one for each of 1,000.
	maxOrganizationKeys = 1000
	// maxRotatedKeys bounds a member's keys together with the old ones in their overlap. Each of
	// 20 keys can be rotated four times meanwhile, and who had 100 keys from before there was a
	// cap for each member can rotate.
	maxRotatedKeys = 100
)

// isValid leaves out keys that ended.
func isValid(at time.Time) predicate.APIKey {
	return apikey.And(apikey.RevokedAtIsNil(),
		apikey.Or(apikey.ExpiresAtIsNil(), apikey.ExpiresAtGT(at)),
		apikey.Or(apikey.SupersededAtIsNil(), apikey.SupersededAtGT(at)))
}

// mustHaveRoomForKey counts under the lock of members. A key that was rotated doesn't count:
// the one that replaces it does.
func mustHaveRoomForKey(ctx context.Context, c *change.Change, of publicid.User) error {
	counted := c.APIKey.Query().Where(isValid(store.Now()), apikey.SupersededAtIsNil())
	if err := mustBeFewer(ctx, counted.Clone().Where(apikey.UserID(of)), maxMemberKeys); err != nil {
		return err
	}
	return mustBeFewer(ctx, counted, maxOrganizationKeys)
}

// mustHaveRoomToRotate leaves out the key that is rotated. The cap of the organization doesn't
// count: others have no say in whether somebody can replace a key that leaked.
func mustHaveRoomToRotate(ctx context.Context, c *change.Change, old *db.APIKey) error {
	counted := c.APIKey.Query().Where(isValid(store.Now()), apikey.UserID(old.UserID), apikey.IDNEQ(old.ID))
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
