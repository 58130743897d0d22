package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/vote"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Votes lists the votes on a post, newest first, with their contacts.
func (s *Service) Votes(ctx context.Context, on publicid.Post, q page.Query) (page.Page[*db.Vote], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("votes", on)
	last := page.After[publicid.Vote](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Vote]{}, err
	}
	if err := s.mustHavePost(ctx, on); err != nil {
		return page.Page[*db.Vote]{}, err
	}
	query := s.store.Client().Vote.Query().Where(vote.PostID(on)).Order(db.Desc(vote.FieldID)).Limit(limit + 1).WithContact(shownOfVoter)
	if last != nil {
		query.Where(vote.IDLT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.Vote]{}, errors.Wrap(err, "list votes")
	}
	for _, v := range rows {
		if v.Edges.Contact == nil {
			v.ContactID = nil // deleted between the statement that reads votes and the one that reads contacts
		}
	}
	return page.Cut(list, rows, limit, page.ByID(func(v *db.Vote) string { return v.ID.String() })), nil
}
