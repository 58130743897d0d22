package access

import (
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/ent/db/user"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// creatorsOf returns the other members that may know a key that the caller creates for a member.
// These are the caller and the creators of the caller's key, because any of them may have sent the
// request.
func creatorsOf(c *change.Change, of publicid.User) []publicid.User {
	return othersThan(of, append(slices.Clone(c.Caller.Key.CreatedBy), c.Caller.User.ID))
}

func othersThan(of publicid.User, given []publicid.User) []publicid.User {
	var others []publicid.User
	for _, id := range given {
		if id != of && !slices.Contains(others, id) {
			others = append(others, id)
		}
	}
	return others
}

// revokeUnmanaged revokes keys whose creators may no longer manage the key's member. It runs after
// each change of a role, under the lock of members. Without it, a removed member could keep acting
// as other members with keys created for them. A member's promotion would also promote the creator
// of that member's key.
func revokeUnmanaged(ctx context.Context, c *change.Change) error {
	at := postgres.Now()
	keys, err := c.APIKey.Query().Where(isValid(at), apikey.CreatedByNotNil()).WithUser().All(ctx)
	if err != nil {
		return errors.Wrap(err, "load API keys made for others")
	}
	creators, err := creatorsNow(ctx, c, keys)
	if err != nil {
		return err
	}
	var unmanaged []publicid.APIKey
	for _, k := range keys {
		for _, id := range k.CreatedBy {
			by := creators[id]
			if by == nil || (manager{member: by}).mayManageKeysOf(k.Edges.User) != nil {
				unmanaged = append(unmanaged, k.ID)
				break
			}
		}
	}
	if len(unmanaged) == 0 {
		return nil
	}
	if err := c.APIKey.Update().Where(apikey.IDIn(unmanaged...)).SetRevokedAt(at).Exec(ctx); err != nil {
		return errors.Wrap(err, "revoke API keys made for others")
	}
	return nil
}

// createdWith returns those of the organization's valid keys that a key created, the keys that these created, and so on.
func createdWith(ctx context.Context, c *change.Change, id publicid.APIKey) ([]publicid.APIKey, error) {
	keys, err := c.APIKey.Query().Where(apikey.CreatedByKeyIDNotNil()).Select(apikey.FieldID, apikey.FieldCreatedByKeyID, apikey.FieldRevokedAt).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the keys that a key created")
	}
	madeBy := map[publicid.APIKey][]*db.APIKey{}
	for _, k := range keys {
		madeBy[*k.CreatedByKeyID] = append(madeBy[*k.CreatedByKeyID], k)
	}
	var found []publicid.APIKey
	// A revoked key in between does not protect the keys that it created.
	for next := madeBy[id]; len(next) > 0; {
		k := next[0]
		next = append(next[1:], madeBy[k.ID]...)
		if k.RevokedAt == nil {
			found = append(found, k.ID)
		}
	}
	return found, nil
}

// creatorsNow loads those creators of the keys that are still members.
func creatorsNow(ctx context.Context, c *change.Change, keys []*db.APIKey) (map[publicid.User]*db.User, error) {
	var ids []publicid.User
	for _, k := range keys {
		ids = append(ids, k.CreatedBy...)
	}
	members, err := c.User.Query().Where(isMember, user.IDIn(othersThan(publicid.User{}, ids)...)).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load who made API keys")
	}
	byID := make(map[publicid.User]*db.User, len(members))
	for _, m := range members {
		byID[m.ID] = m
	}
	return byID, nil
}
