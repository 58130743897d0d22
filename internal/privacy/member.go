package privacy

import (
	"context"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/ent/db/user"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// EraseMember erases the name and the address of a removed member. Posts, votes and comments keep the
// user's id, so the pages show a former member as their author. The erasure is complete when
// EraseMember returns, because no event, delivery or export holds the name or address of a member.
func (s *Service) EraseMember(ctx context.Context, id publicid.User, q change.Request[publicid.User]) error {
	_, err := change.Run(ctx, s.changes, q, func(c *change.Change) (publicid.User, error) { return id, s.eraseMember(ctx, c, id) })
	return err
}

// EraseMemberAsOperator is EraseMember for the operator, in the organization of the context. It works
// in every billing state.
func (s *Service) EraseMemberAsOperator(ctx context.Context, id publicid.User) error {
	of, err := s.store.Client().Organization.Query().Only(ctx)
	if err != nil {
		return errors.Wrap(err, "load the organization")
	}
	return s.changes.RunForService(ctx, of.ID, func(ctx context.Context, c *change.Change) error { return s.eraseMember(ctx, c, id) })
}

func (s *Service) eraseMember(ctx context.Context, c *change.Change, id publicid.User) error {
	if err := access.LockForAdmin(ctx, c); err != nil {
		return err
	}
	old, err := c.User.Query().Where(user.ID(id), user.KindEQ(user.KindMember)).Only(ctx)
	switch {
	case db.IsNotFound(err):
		return problem.Missing("member")
	case err != nil:
		return errors.Wrap(err, "load the member")
	case old.Role != nil:
		return problem.MemberNotRemoved.Problem()
	case !strings.Contains(old.Email, "@"): // erased before
		return nil
	}
	if err := eraseMemberHashes(ctx, c.Tx, old, s.contacts.EmailHash(old.Email)); err != nil {
		return err
	}
	if err := c.APIKey.Update().Where(apikey.UserID(id)).SetName(event.Erased).Exec(ctx); err != nil {
		return errors.Wrap(err, "erase the names of the member's API keys")
	}
	// The address has to be unique in the organization, so the id replaces it, as for a guest.
	if err := c.User.UpdateOne(old).SetEmail(id.String()).SetName("").SetUpdatedAt(postgres.Now()).Exec(ctx); err != nil {
		return errors.Wrap(err, "erase the member")
	}
	c.Audit("eraseMember", id)
	return change.RemoveAnswers(ctx, c.Tx, id.UUID())
}
