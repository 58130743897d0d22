package feedback

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db/contact"
	"earshot/ent/db/post"
	"earshot/ent/db/posttag"
	"earshot/ent/db/predicate"
	"earshot/internal/contacts"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Posts lists the live posts of a board.
func (s *Service) Posts(ctx context.Context, on publicid.Board, q PostQuery) (page.Page[*Post], error) {
	in, err := q.check("posts", on, boardSorts)
	if err != nil {
		return page.Page[*Post]{}, err
	}
	if len(in.tags) > 0 { // some of the tags may exist and match posts
		if err := s.mustHaveListed(ctx, on, in); err != nil {
			return page.Page[*Post]{}, err
		}
	}
	if in.sort == sortUpdated {
		return s.changedPosts(ctx, &on, in)
	}
	found, place, err := s.postPlaces(ctx, on, in)
	if err != nil {
		return page.Page[*Post]{}, errors.Wrap(err, "list posts")
	}
	if len(found.Items) == 0 && len(in.tags) == 0 {
		// Only an empty list needs this check, because posts imply their board and contact.
		if err := s.mustHaveListed(ctx, on, in); err != nil {
			return page.Page[*Post]{}, err
		}
	}
	whole, err := s.wholePosts(ctx, in.memory, in.list, place, found)
	in.tellRevenue(found.Items, whole)
	return whole, err
}

type postPlace = func(*listedPost) []string

// postPlaces finds a page of posts. It also returns a function that computes the place of a post in
// the list. A search that the database cannot read finds nothing.
func (s *Service) postPlaces(ctx context.Context, on publicid.Board, in checkedPostQuery) (page.Page[*listedPost], postPlace, error) {
	found, place, err := s.foundPlaces(ctx, on, in)
	if page.UnreadableSearch(err) {
		return page.Page[*listedPost]{}, in.place, nil
	}
	return found, place, err
}

func (s *Service) foundPlaces(ctx context.Context, on publicid.Board, in checkedPostQuery) (page.Page[*listedPost], postPlace, error) {
	if in.sort == sortRelevance {
		return s.relevant(ctx, on, in)
	}
	list := s.listed
	if in.sort == sortRevenue {
		list = s.byRevenue
	}
	rows, stopped, err := list(ctx, on, in, in.limit+1)
	if err != nil {
		return page.Page[*listedPost]{}, nil, err
	}
	out := page.Cut(in.list, rows, in.limit, in.place)
	if stopped != nil {
		out.NextCursor = page.Cursor(in.list, in.place(*stopped))
	}
	return out, in.place, nil
}

// listed reads the first posts of a list after its cursor. If there is a search, it reads only the
// posts that match. Stopped is as in page.Search.
func (s *Service) listed(ctx context.Context, on publicid.Board, in checkedPostQuery, limit int) (rows []*listedPost, stopped **listedPost, err error) {
	if in.q != "" {
		return s.search(on, in, TitleOrText).First(ctx, limit)
	}
	of := in.rows(on)
	of.Limit, of.Most = limit, page.FirstRead
	rows, err = s.readPosts(ctx, of)
	return rows, nil, err
}

func (s *Service) readPosts(ctx context.Context, of page.Selection[predicate.Post]) ([]*listedPost, error) {
	return PostPages.Read(ctx, s.store, of)
}

// mustHaveListed checks that the board and the resources in the filters belong to the organization.
// A wrong id is then an error and not an empty list.
func (s *Service) mustHaveListed(ctx context.Context, on publicid.Board, in checkedPostQuery) error {
	tags := distinctTags(in.tags)
	there, err := lookUpFilter(ctx, s.store, on, in.contact, tags)
	switch {
	case err != nil:
		return err
	case !there.Board:
		return problem.Missing("board")
	case !there.Contact:
		return problem.MissingIn("contactId", "contact")
	case there.Tags != len(tags):
		return problem.MissingIn("tagIds", "tag")
	}
	return nil
}

// on matches the live posts of the board after the cursor that pass the filters.
func (in *checkedPostQuery) on(board publicid.Board) []predicate.Post {
	return append(in.filters(), post.BoardID(board), post.DeletedAtIsNil())
}

// columns returns the columns that order the list, all descending.
func (in *checkedPostQuery) columns() []string {
	switch in.sort {
	case sortVotes:
		return []string{post.FieldVoteCount, post.FieldID}
	case sortActive:
		return []string{post.FieldLastActivityAt, post.FieldID}
	}
	return []string{post.FieldID}
}

// behind returns the values of the columns at the end of the previous page, or nil for the first
// page.
func (in *checkedPostQuery) behind() []any {
	switch {
	case in.last == nil:
		return nil
	case in.value == nil:
		return []any{*in.last}
	}
	return []any{in.value, *in.last}
}

// rows returns the list without the search. If nothing is filtered, it follows the board's index.
func (in *checkedPostQuery) rows(on publicid.Board) page.Selection[predicate.Post] {
	if in.sort == sortRevenue {
		return in.revenueRows(on)
	}
	if in.statuses == nil && in.contact == nil && len(in.tags) == 0 {
		return AlongBoard(on, in.columns(), in.behind())
	}
	return page.Selection[predicate.Post]{Where: in.on(on), Order: in.order()}
}

func (in *checkedPostQuery) order() string { return page.Descending(post.Table, in.columns()...) }

// newestPosts is the order of posts by their creation.
var newestPosts = page.Descending(post.Table, post.FieldID)

// filters returns the conditions of the query and its cursor, except the search.
func (in *checkedPostQuery) filters() (all []predicate.Post) {
	if in.statuses != nil {
		all = append(all, post.StatusIn(in.statuses...))
	}
	if in.contact != nil {
		all = append(all, post.ContactID(*in.contact))
	}
	if len(in.tags) > 0 {
		all = append(all, tagged(in.tags))
	}
	if behind := in.behind(); behind != nil && in.sort != sortRevenue {
		all = append(all, func(s *sql.Selector) {
			s.Where(sql.CompositeLT(s.Columns(in.columns()...), behind...))
		})
	}
	return all
}

// tagged matches the posts with any of the tags.
func tagged(tags []publicid.Tag) predicate.Post {
	return func(s *sql.Selector) {
		links := sql.Table(posttag.Table)
		ids := make([]any, len(tags))
		for i, t := range tags {
			ids[i] = t
		}
		s.Where(sql.In(s.C(post.FieldID),
			sql.Select(links.C(posttag.FieldPostID)).From(links).Where(sql.In(links.C(posttag.FieldTagID), ids...))))
	}
}

func (in *checkedPostQuery) place(p *listedPost) []string {
	switch in.sort {
	case sortVotes:
		return []string{page.ByNumber.Write(int64(p.VoteCount)), p.ID.String()}
	case sortRevenue:
		return []string{page.ByNumber.Write(p.Revenue), p.ID.String()}
	case sortActive:
		return []string{page.ByTime.Write(p.LastActivityAt), p.ID.String()}
	}
	return []string{p.ID.String()}
}

// ContactPosts lists a contact's live posts on all boards, newest first.
func (s *Service) ContactPosts(ctx context.Context, of publicid.Contact, q page.Query) (page.Page[*Post], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("contactPosts", of)
	last := page.After[publicid.Post](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*Post]{}, err
	}
	where := []predicate.Post{post.ContactID(of), post.DeletedAtIsNil()}
	if last != nil {
		where = append(where, post.IDLT(*last))
	}
	rows, err := s.readPosts(ctx, page.Selection[predicate.Post]{Where: where, Order: newestPosts, Limit: limit + 1, Most: page.FirstRead})
	if err != nil {
		return page.Page[*Post]{}, errors.Wrap(err, "list the contact's posts")
	}
	if len(rows) == 0 {
		// Only an empty list needs this check, because posts imply their contact.
		if _, err := contacts.OnlyContact(ctx, s.store.Client().Contact.Query().Where(contact.ID(of))); err != nil {
			return page.Page[*Post]{}, err
		}
	}
	place := page.ByID(func(p *listedPost) string { return p.ID.String() })
	return s.wholePosts(ctx, q.Memory, list, place, page.Cut(list, rows, limit, place))
}
