package feedback

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db/contact"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/contacts"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// AllPosts lists the live posts of the organization, on all boards.
func (s *Service) AllPosts(ctx context.Context, q PostQuery) (page.Page[*Post], error) {
	in, err := q.check("allPosts", publicid.Board{}, allSorts)
	if err != nil {
		return page.Page[*Post]{}, err
	}
	if in.sort == sortUpdated {
		return s.changedPosts(ctx, nil, in)
	}
	rows, err := s.readPosts(ctx, page.Selection[predicate.Post]{
		Where: append(in.filters(), post.DeletedAtIsNil()), Order: in.order(), Limit: in.limit + 1, Most: page.FirstRead,
	})
	if err != nil {
		return page.Page[*Post]{}, errors.Wrap(err, "list all posts")
	}
	if len(rows) == 0 {
		if err := s.mustHaveFiltered(ctx, nil, in); err != nil {
			return page.Page[*Post]{}, err
		}
	}
	return s.wholePosts(ctx, in.memory, in.list, in.place, page.Cut(in.list, rows, in.limit, in.place))
}

// changedPosts lists the posts of one board or of all boards in the order of their changes.
func (s *Service) changedPosts(ctx context.Context, on *publicid.Board, in checkedPostQuery) (page.Page[*Post], error) {
	where := append(in.filters(), post.DeletedAtIsNil())
	list := page.Changed[publicid.Post, *listedPost, predicate.Post]{
		LargeRows: s.largePosts(ctx, in.memory, in.list, nil),
		Store:     s.store, Deletions: page.DeletedPosts,
		In:      func(p *listedPost) int64 { return p.ChangedIn },
		Deleted: func(id uuid.UUID) string { return publicid.Of[publicid.Post](id).String() },
	}
	if on != nil {
		raw := on.UUID()
		where = append(where, post.BoardID(*on))
		list.Deletions, list.Of = page.DeletedBoardPosts, &raw
	}
	if since := in.sync.UpdatedSince; since != nil {
		where = append(where, post.UpdatedAtGTE(*since))
	}
	list.Rows = func(limit int, within predicate.Post) ([]*listedPost, error) {
		return s.readPosts(ctx, page.Selection[predicate.Post]{
			Where: append(where, within), Order: page.ByChange(post.Table), Limit: limit, Most: page.FirstRead,
		})
	}
	found, err := list.Page(ctx, in.at, in.limit, in.sync)
	if err != nil {
		return page.Page[*Post]{}, err
	}
	if len(found.Items)+len(found.Deleted) == 0 {
		if err := s.mustHaveFiltered(ctx, on, in); err != nil {
			return page.Page[*Post]{}, err
		}
	}
	return page.Each(found, wholePost), nil
}

// mustHaveFiltered is mustHaveListed for a list of one board or of all boards.
func (s *Service) mustHaveFiltered(ctx context.Context, on *publicid.Board, in checkedPostQuery) error {
	if on != nil {
		return s.mustHaveListed(ctx, *on, in)
	}
	if in.contact == nil {
		return nil
	}
	_, err := contacts.OnlyContact(ctx, s.store.Client().Contact.Query().Where(contact.ID(*in.contact)))
	if problem.Is(err, problem.NotFound) {
		return problem.MissingIn("contactId", "contact")
	}
	return err
}

// wholePosts loads the missing parts of a page's posts.
func (s *Service) wholePosts(
	ctx context.Context, memory *page.Reservation, list string, place postPlace, rows page.Page[*listedPost],
) (page.Page[*Post], error) {
	whole, err := page.Filled(ctx, s.largePosts(ctx, memory, list, place), rows)
	return page.Each(whole, wholePost), err
}

func (s *Service) largePosts(
	ctx context.Context, memory *page.Reservation, list string, place postPlace,
) page.LargeRows[publicid.Post, *listedPost] {
	return page.LargeRows[publicid.Post, *listedPost]{
		List: list, Memory: memory, Place: place, ID: func(p *listedPost) publicid.Post { return p.ID },
		Load: func(ids ...publicid.Post) ([]*listedPost, error) {
			return s.readPosts(ctx, page.Selection[predicate.Post]{
				Where: []predicate.Post{post.IDIn(ids...), post.DeletedAtIsNil()}, Order: newestPosts, Limit: len(ids), Most: page.All,
			})
		},
		Size: func(p *listedPost) int { return page.JSONSize(p.BodyText) + page.JSONSize(p.BodyJSON) },
	}
}
