package access

import (
	"context"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/ent/db/user"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// MemberInput has the changes of a member. Nil keeps a field.
type MemberInput struct{ Name, Role *string }

func (in *MemberInput) check() error {
	var bad problem.Fields
	if in.Name != nil {
		trimmed := strings.TrimSpace(*in.Name)
		in.Name = &trimmed
		bad.Line("name", trimmed, 1, maxMemberName)
	}
	if in.Role != nil {
		checkRole(&bad, *in.Role)
	}
	return bad.Err()
}

// UpdateMember changes a member's name or role. It revokes keys whose creators may no longer manage
// them. Changing the role of the last owner is problem.Conflict.
func (s *Service) UpdateMember(
	ctx context.Context, id publicid.User, in MemberInput, q change.Request[*db.User],
) (*db.User, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.User, error) {
		return updateMember(ctx, c, id, in, q)
	})
}

func updateMember(
	ctx context.Context, c *change.Change, id publicid.User, in MemberInput, q change.Request[*db.User],
) (*db.User, error) {
	old, by, err := memberToChange(ctx, c, id, q)
	if err != nil {
		return nil, err
	}
	update := c.User.UpdateOne(old)
	change.Differs(in.Name, old.Name, update.SetName)
	role := (*user.Role)(in.Role)
	newRole := role != nil && *role != *old.Role
	if newRole {
		if err := by.mayManage(*role); err != nil {
			return nil, err
		}
		if err := mustLeaveOwner(ctx, c, old); err != nil {
			return nil, err
		}
		update.SetRole(*role)
	}
	if change.Unchanged(update.Mutation()) {
		return old, nil
	}
	c.Audit("updateMember", id)
	changed, err := update.SetUpdatedAt(postgres.Now()).Save(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "change the member")
	}
	if !newRole {
		return changed, nil
	}
	return changed, revokeUnmanaged(ctx, c)
}

// RemoveMember removes a member of the caller's organization. It revokes the member's keys and
// those that the member created for others. Removing the last owner is problem.Conflict.
func (s *Service) RemoveMember(ctx context.Context, id publicid.User, q change.Request[*db.User]) error {
	_, err := change.Run(ctx, s.changes, q, func(c *change.Change) (*db.User, error) { return removeMember(ctx, c, id, q) })
	return err
}

// DelistMember is RemoveMember for the operator, in the organization in the context.
func (s *Service) DelistMember(ctx context.Context, id publicid.User) error {
	return s.asOperator(ctx, func(ctx context.Context, c *change.Change) error {
		_, err := removeMember(ctx, c, id, change.Request[*db.User]{})
		return err
	})
}

func removeMember(ctx context.Context, c *change.Change, id publicid.User, q change.Request[*db.User]) (*db.User, error) {
	old, _, err := memberToChange(ctx, c, id, q)
	if err != nil {
		return nil, err
	}
	if err := mustLeaveOwner(ctx, c, old); err != nil {
		return nil, err
	}
	c.Audit("deleteMember", id)
	at := postgres.Now()
	if err := c.User.UpdateOne(old).ClearRole().SetUpdatedAt(at).Exec(ctx); err != nil {
		return nil, errors.Wrap(err, "remove the member")
	}
	err = c.APIKey.Update().Where(apikey.UserID(id), apikey.RevokedAtIsNil()).SetRevokedAt(at).Exec(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "revoke the member's API keys")
	}
	return old, revokeUnmanaged(ctx, c)
}

// memberToChange loads a member and checks that the caller may manage it and that it meets the
// request's precondition. It also returns the caller.
func memberToChange(
	ctx context.Context, c *change.Change, id publicid.User, q change.Request[*db.User],
) (*db.User, manager, error) {
	by, err := lockMembers(ctx, c)
	if err != nil {
		return nil, by, err
	}
	found, err := onlyMember(ctx, c.User.Query().Where(user.ID(id)))
	if err != nil {
		return nil, by, err
	}
	if err := by.mayManage(*found.Role); err != nil {
		return nil, by, err
	}
	return found, by, q.CheckIfMatch(c, found)
}

// mustLeaveOwner refuses to remove the only owner of an organization. The lock of members prevents
// that another owner is removed at the same time.
func mustLeaveOwner(ctx context.Context, c *change.Change, from *db.User) error {
	if *from.Role != user.RoleOwner {
		return nil
	}
	others, err := c.User.Query().Where(user.RoleEQ(user.RoleOwner), user.IDNEQ(from.ID)).Count(ctx)
	if err != nil {
		return errors.Wrap(err, "count owners")
	}
	if others == 0 {
		return problem.LastOwner.Problem()
	}
	return nil
}
