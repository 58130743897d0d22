package access

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/ent/db/user"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
)

// isMember excludes removed users and guests.
var isMember = user.RoleNotNil()

// manager is the actor that manages members and their keys.
type manager struct {
	// member is nil for the operator at the command line, who may do everything.
	member *db.User
	// key is the key of the request, nil for the operator.
	key *db.APIKey
}

// managerOf loads the caller's present state from the database. Keys are cached for a moment, in
// which the key may have been revoked and its member changed or removed.
func managerOf(ctx context.Context, c *change.Change) (manager, error) {
	if c.Caller.User == nil {
		return manager{}, nil
	}
	return callerNow(ctx, c.APIKey, c.Caller)
}

// MustAdminister refuses a caller that is neither an owner nor an admin. It reads the caller's
// present role from the database.
func MustAdminister(ctx context.Context, keys *db.APIKeyClient) error {
	by, err := callerNow(ctx, keys, change.CallerOf(ctx))
	if err != nil {
		return err
	}
	return by.mayManage(user.RoleAdmin)
}

func callerNow(ctx context.Context, keys *db.APIKeyClient, caller *change.Caller) (manager, error) {
	key, err := keys.Query().Where(apikey.ID(caller.Key.ID)).WithUser().Only(ctx)
	if db.IsNotFound(err) {
		return manager{}, BadKey()
	}
	if err != nil {
		return manager{}, errors.Wrap(err, "load the caller")
	}
	if ended(key, postgres.Now()) || key.Edges.User.Role == nil {
		return manager{}, BadKey()
	}
	return manager{key.Edges.User, key}, nil
}

// mayManage checks the manager's role. An owner manages all members, and an admin manages all
// except owners. So members can't grant a higher role than their own.
func (m manager) mayManage(of user.Role) error {
	if m.member == nil {
		return nil
	}
	switch *m.member.Role {
	case user.RoleOwner:
		return nil
	case user.RoleAdmin:
		if of != user.RoleOwner {
			return nil
		}
	}
	return problem.RoleInsufficient.Problem()
}

// mayManageKeysOf is mayManage for a member's keys. Every member manages their own keys.
func (m manager) mayManageKeysOf(of *db.User) error {
	switch {
	case m.member != nil && m.member.ID == of.ID:
		return nil
	case of.Role == nil: // removed members, whose keys are revoked already
		return m.mayManage(user.RoleMember)
	}
	return m.mayManage(*of.Role)
}

// LockForAdmin serializes changes of the organization's settings and permits them only to owners
// and admins.
func LockForAdmin(ctx context.Context, c *change.Change) error {
	by, err := lockMembers(ctx, c)
	if err != nil {
		return err
	}
	return by.mayManage(user.RoleAdmin)
}
