package feedback

import (
	"context"
	"slices"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/post"
	"earshot/ent/db/posttag"
	"earshot/ent/db/predicate"
	"earshot/ent/db/tag"
	"earshot/internal/contacts"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// The orders of a list of posts. All are descending, and posts that are equal go
// by their creation.
const (
	sortRelevance = "relevance"
	sortNewest    = "newest"
	sortVotes     = "votes"
	sortActive    = "active"
)

// PostQuery filters and sorts the posts of a board. A member that is nil or empty
// filters nothing.
type PostQuery struct {
	page.Query
	// Q is words that the title and the text hold between them.
	Q *string
	// Statuses and TagIDs: any of them.
	Statuses, TagIDs *[]string
	ContactID        *string
	// Sort is relevance, newest, votes or active. Nil is relevance where there is
	// a Q, else newest.
	Sort *string
}

// checkedPostQuery is a PostQuery whose parts are read.
type checkedPostQuery struct {
	q        string
	statuses []post.Status
	tags     []publicid.Tag
	contact  *publicid.Contact
	sort     string
	limit    int
	list     string
	memory   *page.Reservation

	// Where the page before ended: an id, and the part before it of the order.
	last  *publicid.Post
	tier  int64
	value any
}

func (in PostQuery) check(on publicid.Board) (checkedPostQuery, error) {
	var bad problem.Fields
	out := checkedPostQuery{sort: sortNewest, limit: in.Size(&bad, page.Standard, page.Max), memory: in.Memory, tier: titleTier}
	if in.Q != nil {
		out.q, out.sort = *in.Q, sortRelevance
		bad.Text("q", *in.Q, 1, page.MaxSearch)
	}
	if in.Statuses != nil {
		out.statuses = statuses(&bad, *in.Statuses)
	}
	if in.TagIDs != nil {
		bad.Items("tagIds", *in.TagIDs, maxPostTags)
		out.tags = tagIDs(&bad, *in.TagIDs)
	}
	if in.ContactID != nil {
		id := publicid.Read[publicid.Contact](*in.ContactID)
		out.contact = &id
	}
	if in.Sort != nil {
		out.sort = *in.Sort
	}
	in.Sort = &out.sort
	out.list = page.ListOf("posts", on, in)
	switch {
	case !slices.Contains([]string{sortRelevance, sortNewest, sortVotes, sortActive}, out.sort):
		bad.Add("sort", "enum", "must be relevance, newest, votes or active")
	case out.sort == sortRelevance && in.Q == nil:
		bad.Add("sort", "relevance", "relevance needs a q to be relevant to")
	default:
		out.readCursor(&bad, in.Query)
	}
	return out, bad.Err()
}

func statuses(bad *problem.Fields, given []string) []post.Status {
	bad.Items("status", given, len(postStatuses))
	out := make([]post.Status, len(given))
	for i, v := range given {
		if out[i] = post.Status(v); post.StatusValidator(out[i]) != nil {
			bad.Add(problem.Item("status", i), "enum", "%s", statusWords)
		}
	}
	return out
}

func (in *checkedPostQuery) readCursor(bad *problem.Fields, q page.Query) {
	var last publicid.Post
	var ok bool
	switch in.sort {
	case sortVotes:
		in.value, ok = page.ByNumber.After(bad, in.list, q, &last)
	case sortActive:
		in.value, ok = page.ByTime.After(bad, in.list, q, &last)
	case sortRelevance:
		if in.tier, ok = page.ByNumber.After(bad, in.list, q, &last); !ok {
			in.tier = titleTier
		}
		if in.tier != titleTier && in.tier != textTier {
			page.BadCursor(bad)
		}
	default:
		in.last = page.After[publicid.Post](bad, in.list, q)
	}
	if ok {
		in.last = &last
	}
}

// Relevance has two steps, so that a page of it is a page by id in each, however
// much is found: first the posts whose title holds the words, then those that
// only hold them together with their text.
const (
	titleTier int64 = iota + 1
	textTier
)

// Posts lists the live posts of a board.
func (s *Service) Posts(ctx context.Context, on publicid.Board, q PostQuery) (page.Page[*Post], error) {
	in, err := q.check(on)
	if err != nil {
		return page.Page[*Post]{}, err
	}
	client := s.store.Client()
	if err := mustHaveBoard(ctx, client.Board, on); err != nil {
		return page.Page[*Post]{}, err
	}
	if err := in.mustHaveFilters(ctx, client); err != nil {
		return page.Page[*Post]{}, err
	}
	if in.sort == sortRelevance {
		return s.relevant(ctx, on, in)
	}
	rows, stopped, err := s.posts(ctx, on, in, in.limit+1, store.TitleOrText)
	if err != nil {
		return page.Page[*Post]{}, errors.Wrap(err, "list posts")
	}
	out := page.Cut(in.list, rows, in.limit, in.place)
	if stopped != nil {
		out.NextCursor = page.Cursor(in.list, in.place(*stopped))
	}
	return s.wholePosts(ctx, in.memory, in.list, in.place, out)
}

// posts reads the first posts of a list behind its cursor, those of a search only
// if there is one. Stopped is as in searched.
func (s *Service) posts(ctx context.Context, on publicid.Board, in checkedPostQuery, limit int, part store.Part) (rows []*db.Post, stopped **db.Post, err error) {
	list := append(in.filters(), post.BoardID(on), post.DeletedAtIsNil())
	order := in.order()
	query := func(ctx context.Context, limit, offset int, where ...predicate.Post) ([]*db.Post, error) {
		return s.store.Lists().Post.Query().Where(where...).Order(order).Limit(limit).Offset(offset).
			Select(post.FieldVoteCount, post.FieldLastActivityAt).All(ctx)
	}
	if in.q == "" {
		rows, err = query(ctx, limit, 0, list...)
		return rows, nil, err
	}
	return page.Search[predicate.Post, *db.Post]{
		List: list, Order: order, Match: store.PostMatches(in.q, part), Query: query,
		Holding: func(limit int) ([]uuid.UUID, error) { return s.store.PostsHolding(ctx, on, in.q, part, limit) },
	}.First(ctx, limit)
}

// relevant goes through the steps of relevance until the page is full.
func (s *Service) relevant(ctx context.Context, on publicid.Board, in checkedPostQuery) (page.Page[*Post], error) {
	var rows []*db.Post
	titles := 0
	place := func(p *db.Post) []string {
		if slices.Index(rows, p) < titles {
			return inTier(titleTier, p)
		}
		return inTier(textTier, p)
	}
	for ; in.tier <= textTier && len(rows) <= in.limit; in.tier, in.last = in.tier+1, nil {
		part := store.NotTitle
		if in.tier == titleTier {
			part = store.Title
		}
		more, stopped, err := s.posts(ctx, on, in, in.limit+1-len(rows), part)
		if err != nil {
			return page.Page[*Post]{}, errors.Wrap(err, "search posts")
		}
		rows = append(rows, more...)
		if in.tier == titleTier {
			titles = len(rows)
		}
		if stopped != nil {
			next := page.Cursor(in.list, inTier(in.tier, *stopped))
			return s.wholePosts(ctx, in.memory, in.list, place, page.Page[*db.Post]{Items: rows, NextCursor: next})
		}
	}
	return s.wholePosts(ctx, in.memory, in.list, place, page.Cut(in.list, rows, in.limit, place))
}

func inTier(tier int64, p *db.Post) []string {
	return []string{page.ByNumber.Write(tier), p.ID.String()}
}

// mustHaveFilters makes sure that what is filtered by is the organization's, so
// that a list isn't empty only because of a slip.
func (in *checkedPostQuery) mustHaveFilters(ctx context.Context, client *db.Client) error {
	if in.contact != nil {
		ok, err := store.Exists(ctx, client.Contact.Query().Where(contact.ID(*in.contact)))
		if err != nil {
			return errors.Wrap(err, "look up the contact")
		}
		if !ok {
			return problem.MissingIn("contactId", "contact")
		}
	}
	if len(in.tags) == 0 {
		return nil
	}
	in.tags = distinctTags(in.tags)
	n, err := client.Tag.Query().Where(tag.IDIn(in.tags...)).Count(ctx)
	if err != nil {
		return errors.Wrap(err, "look up the tags")
	}
	if n != len(in.tags) {
		return problem.MissingIn("tagIds", "tag")
	}
	return nil
}

// column is what the list goes by before the id; "" is the id alone.
func (in *checkedPostQuery) column() string {
	return map[string]string{sortVotes: post.FieldVoteCount, sortActive: post.FieldLastActivityAt}[in.sort]
}

func (in *checkedPostQuery) order() func(*sql.Selector) {
	if column := in.column(); column != "" {
		return db.Desc(column, post.FieldID)
	}
	return db.Desc(post.FieldID)
}

// filters are those of the query and its cursor, but the search.
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
	switch column := in.column(); {
	case in.last == nil:
	case column == "":
		all = append(all, post.IDLT(*in.last))
	default:
		all = append(all, func(s *sql.Selector) {
			s.Where(sql.CompositeLT([]string{s.C(column), s.C(post.FieldID)}, in.value, *in.last))
		})
	}
	return all
}

// tagged are the posts that carry any of the tags.
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

func (in *checkedPostQuery) place(p *db.Post) []string {
	switch in.sort {
	case sortVotes:
		return []string{page.ByNumber.Write(int64(p.VoteCount)), p.ID.String()}
	case sortActive:
		return []string{page.ByTime.Write(p.LastActivityAt), p.ID.String()}
	}
	return []string{p.ID.String()}
}

// ContactPosts lists the live posts that are attached to a contact, on all
// boards, newest first.
func (s *Service) ContactPosts(ctx context.Context, of publicid.Contact, q page.Query) (page.Page[*Post], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("contactPosts", of)
	last := page.After[publicid.Post](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*Post]{}, err
	}
	client := s.store.Client()
	if _, err := contacts.OnlyContact(ctx, client.Contact.Query().Where(contact.ID(of))); err != nil {
		return page.Page[*Post]{}, err
	}
	query := client.Post.Query().Where(post.ContactID(of), post.DeletedAtIsNil()).
		Order(db.Desc(post.FieldID)).Limit(limit + 1)
	if last != nil {
		query.Where(post.IDLT(*last))
	}
	rows, err := query.Select(post.FieldID).All(ctx)
	if err != nil {
		return page.Page[*Post]{}, errors.Wrap(err, "list the contact's posts")
	}
	place := page.ByID(func(p *db.Post) string { return p.ID.String() })
	return s.wholePosts(ctx, q.Memory, list, place, page.Cut(list, rows, limit, place))
}

// wholePosts loads the posts of a page.
func (s *Service) wholePosts(
	ctx context.Context, memory *page.Reservation, list string, place func(*db.Post) []string, rows page.Page[*db.Post],
) (page.Page[*Post], error) {
	rows, err := page.LargeRows[publicid.Post, *db.Post]{
		List: list, Memory: memory, Place: place, ID: func(p *db.Post) publicid.Post { return p.ID },
		Sizes: func(ids ...publicid.Post) ([]*db.Post, error) {
			return s.store.Client().Post.Query().Where(post.IDIn(ids...)).
				Order(store.Sized(post.FieldBodyText, post.FieldBodyJSON)).Select(post.FieldID).All(ctx)
		},
		Load: func(ids ...publicid.Post) ([]*db.Post, error) {
			return s.store.Client().Post.Query().Where(post.IDIn(ids...), post.DeletedAtIsNil()).All(ctx)
		},
		Size: func(p *db.Post) int { return page.JSONSize(p.BodyText) + page.JSONSize(p.BodyJSON) },
	}.Filled(ctx, rows)
	if err != nil {
		return page.Page[*Post]{}, err
	}
	return s.withTags(ctx, rows)
}

// withTags adds the tags to a page of posts.
func (s *Service) withTags(ctx context.Context, rows page.Page[*db.Post]) (page.Page[*Post], error) {
	out := page.Page[*Post]{Items: make([]*Post, len(rows.Items)), NextCursor: rows.NextCursor}
	ids := make([]publicid.Post, len(rows.Items))
	byPost := make(map[publicid.Post]*Post, len(rows.Items))
	for i, p := range rows.Items {
		ids[i], out.Items[i] = p.ID, &Post{Post: p}
		byPost[p.ID] = out.Items[i]
	}
	if len(ids) == 0 {
		return out, nil
	}
	tagged, err := s.store.Client().PostTag.Query().
		Where(posttag.PostIDIn(ids...)).Order(db.Asc(posttag.FieldTagID)).All(ctx)
	if err != nil {
		return page.Page[*Post]{}, errors.Wrap(err, "load the posts' tags")
	}
	for _, t := range tagged {
		byPost[t.PostID].TagIDs = append(byPost[t.PostID].TagIDs, t.TagID)
	}
	return out, nil
}
