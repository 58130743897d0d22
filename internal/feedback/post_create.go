package feedback

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/post"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
)

// maxPostTags bounds the tags of one post. It is more than a reader looks at, and few enough to
// load in one small query.
const maxPostTags = 50

// NewPost has the values of a new post. By is the contact that gave the feedback, if any. The tags are
// ids as the client sent them.
type NewPost struct {
	Title  string
	Body   Body
	By     contacts.Person
	TagIDs []string
}

// wantedPost is a request for a post. The row has the caller as its author, and the slug of its title.
type wantedPost struct {
	by   contacts.Person
	tags []publicid.Tag
	db.Post
}

// CreatePost adds a post to a board and records post.created. A missing contact or tag is
// problem.NotFound, with the member in details.field.
func (s *Service) CreatePost(ctx context.Context, on publicid.Board, in NewPost, q change.Request[*Post]) (*Post, error) {
	in.Title = strings.TrimSpace(in.Title)
	var bad problem.Fields
	bad.Shown("title", in.Title, 1, maxTitle)
	in.Body.check(&bad, 0)
	tags := tagIDs(&bad, in.TagIDs)
	in.By.Check(&bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	row := newPost(on, in)
	author := change.CallerOf(ctx).User
	row.OrganizationID, row.AuthorUserID = author.OrganizationID, &author.ID
	if in.By.ID != nil {
		row.ContactID = new(publicid.Read[publicid.Contact](*in.By.ID))
	}
	return s.posts.Do(ctx, wantedPost{in.By, tags, *row}, q)
}

// comesAlone reports whether a post gets a transaction of its own: a contact may have to be made, and
// many large bodies would not fit into memory.
func (w wantedPost) comesAlone() bool {
	return w.by.ExternalUserID != nil || len(w.BodyText)+len(w.BodyJSON) > maxSharedBodyBytes
}

// createPosts makes the posts of one or more callers.
func (s *Service) createPosts(ctx context.Context, c *change.Change, in []wantedPost) ([]change.Result[*Post], error) {
	rows := make([]*db.Post, len(in))
	var tagIDs []publicid.Tag
	for i, w := range in {
		rows[i], tagIDs = &w.Post, append(tagIDs, w.tags...)
	}
	places, err := keepPlaces(ctx, c, rows)
	if err != nil {
		return nil, err
	}
	tags, err := keepTags(ctx, c, tagIDs)
	if err != nil {
		return nil, err
	}
	out := make([]change.Result[*Post], len(in))
	var fresh []freshPost
	for i, w := range in {
		p := &Post{Post: rows[i]}
		var on PostableBoard
		switch {
		case places.Boards[p.BoardID] == nil:
			out[i].Err = problem.Missing("board")
		case p.ContactID != nil && !places.Contacts[*p.ContactID]:
			out[i].Err = problem.MissingIn("contactId", "contact")
		case w.by.ExternalUserID != nil:
			found, err := s.contacts.Keep(ctx, c, w.by)
			if err != nil {
				return nil, err
			}
			p.ContactID = &found.ID
		}
		if out[i].Err == nil {
			on, out[i].Err = mayPost(places.Boards[p.BoardID], false)
		}
		if out[i].Err == nil {
			p.TagIDs, out[i].Err = tags.of(p.BoardID, w.tags)
		}
		if out[i].Err != nil && !c.Waits {
			out[i].Err = change.ErrHeld // another transaction may hold the row
		}
		if out[i].Err == nil {
			fresh, out[i].Out = append(fresh, freshPost{on, p}), p
		}
	}
	if err := insertPosts(ctx, c, places.Taken, fresh); err != nil {
		return nil, err
	}
	for i := range out {
		if p := out[i].Out; p != nil {
			out[i].Events = []change.Event{{Type: event.PostCreated, At: p.CreatedAt, Payload: postCreated(p.Post)}}
		}
	}
	return out, nil
}

func postCreated(p *db.Post) event.Payload {
	return &event.PostCreatedPayload{BoardHead: event.BoardHead{BoardID: p.BoardID}, Post: eventPost(p)}
}

// newPost returns the row of a post, without its people. Its slug is that of the title, which another post may
// have. It is made here, before the caller joins a batch: the slugs took a tenth of a batch's time in the service.
func newPost(on publicid.Board, in NewPost) *db.Post {
	at := postgres.Now()
	return &db.Post{
		ID: publicid.NewPost(), BoardID: on, Title: in.Title, Slug: slug.From(in.Title, "post", maxPostSlug), Status: post.DefaultStatus,
		BodyText: in.Body.Text, BodyJSON: in.Body.document(),
		CreatedAt: at, UpdatedAt: at, LastActivityAt: at,
	}
}

// keepPlaces keeps the boards and contacts of new posts, and looks for other posts with the slugs of their
// titles.
func keepPlaces(ctx context.Context, c *change.Change, posts []*db.Post) (*PostPlaces, error) {
	slugs := make([]PostSlug, len(posts))
	var from []publicid.Contact
	for i, p := range posts {
		slugs[i] = PostSlug{Board: p.BoardID, Slug: p.Slug}
		if p.ContactID != nil {
			from = append(from, *p.ContactID)
		}
	}
	return KeepPostPlaces(ctx, c.Tx, slugs, from, !c.Waits)
}

// freshPost is a post to insert, on its board.
type freshPost struct {
	on PostableBoard
	*Post
}

// insertPosts inserts posts of keepPlaces with their tags, under free slugs. taken has the slugs of their
// titles that other posts have.
func insertPosts(ctx context.Context, c *change.Change, taken map[PostSlug]bool, fresh []freshPost) error {
	if len(fresh) == 0 {
		return nil
	}
	posts := make([]*Post, len(fresh))
	for i, p := range fresh {
		p.BoardID = p.on.board.ID
		posts[i] = p.Post
	}
	if err := giveSlugs(ctx, c, taken, posts); err != nil {
		return err
	}
	// Two transactions that take the same slugs wait for each other. The fixed order prevents deadlocks.
	posts = slices.SortedFunc(slices.Values(posts), func(a, b *Post) int {
		return cmp.Or(strings.Compare(a.BoardID.String(), b.BoardID.String()), strings.Compare(a.Slug, b.Slug))
	})
	rows := make([]*db.PostCreate, len(posts))
	var tags []*db.PostTagCreate
	for i, p := range posts {
		rows[i] = c.Post.Create().
			SetID(p.ID).SetBoardID(p.BoardID).SetTitle(p.Title).SetSlug(p.Slug).SetStatus(p.Status).
			SetBodyText(p.BodyText).SetNillableContactID(p.ContactID).SetNillableAuthorUserID(p.AuthorUserID).
			SetCreatedAt(p.CreatedAt).SetUpdatedAt(p.UpdatedAt).SetLastActivityAt(p.LastActivityAt)
		if p.BodyJSON != nil {
			rows[i].SetBodyJSON(p.BodyJSON)
		}
		tags = append(tags, tagging(c, p.ID, p.TagIDs)...)
	}
	if _, err := postgres.InsertWithCommit(ctx, c.Post.CreateBulk, rows); err != nil {
		return errors.Wrap(err, "insert the posts")
	}
	return insertTags(ctx, c, tags)
}

// giveSlugs makes the slugs of new posts unique: the title's slug, or the slug with the first free number.
// Another transaction may take one of them meanwhile. Then the store runs this one again.
func giveSlugs(ctx context.Context, c *change.Change, taken map[PostSlug]bool, posts []*Post) error {
	given := maps.Clone(taken)
	numbered := map[PostSlug][]*Post{}
	for _, p := range posts {
		title := PostSlug{Board: p.BoardID, Slug: p.Slug}
		if given[title] {
			numbered[title] = append(numbered[title], p)
			continue
		}
		given[title] = true
	}
	for title, posts := range numbered {
		if err := numberSlugs(ctx, c, given, title, posts); err != nil {
			return err
		}
	}
	return nil
}

// numberSlugs gives posts with the same title on a board the first free numbers. They share one
// search.
func numberSlugs(ctx context.Context, c *change.Change, given map[PostSlug]bool, title PostSlug, posts []*Post) error {
	name := func(n int) string { return slug.Numbered(title.Slug, maxPostSlug, n) }
	live := c.Post.Query().Where(post.BoardID(title.Board), post.DeletedAtIsNil())
	next, err := slug.FirstFree(func(n int) (bool, error) {
		there, err := postgres.Exists(ctx, live.Clone().Where(post.Slug(name(n))))
		return there || given[PostSlug{Board: title.Board, Slug: name(n)}], err
	})
	if err != nil {
		return errors.Wrap(err, "look for a free slug")
	}
	for len(posts) > 0 {
		names := make([]string, len(posts))
		for i := range names {
			names[i] = name(next + i)
		}
		next += len(names)
		there, err := live.Clone().Where(post.SlugIn(names...)).Select(post.FieldSlug).Strings(ctx)
		if err != nil {
			return errors.Wrap(err, "look for free slugs")
		}
		for _, one := range names {
			key := PostSlug{Board: title.Board, Slug: one}
			if given[key] || slices.Contains(there, one) {
				continue
			}
			given[key], posts[0].Slug = true, one
			posts = posts[1:]
		}
	}
	return nil
}

func tagPost(ctx context.Context, c *change.Change, id publicid.Post, tags []publicid.Tag) error {
	return insertTags(ctx, c, tagging(c, id, tags))
}

func tagging(c *change.Change, id publicid.Post, tags []publicid.Tag) []*db.PostTagCreate {
	rows := make([]*db.PostTagCreate, len(tags))
	for i, t := range tags {
		rows[i] = c.PostTag.Create().SetPostID(id).SetTagID(t)
	}
	return rows
}

func insertTags(ctx context.Context, c *change.Change, rows []*db.PostTagCreate) error {
	if _, err := postgres.InsertWithCommit(ctx, c.PostTag.CreateBulk, rows); err != nil {
		return errors.Wrap(err, "tag the posts")
	}
	return nil
}

func tagIDs(bad *problem.Fields, given []string) []publicid.Tag {
	if len(given) > maxPostTags {
		bad.Add("tagIds", "maxItems", "must have at most %d items, not %d", maxPostTags, len(given))
		return nil
	}
	ids := make([]publicid.Tag, len(given))
	for i, id := range given {
		ids[i] = publicid.Read[publicid.Tag](id)
	}
	return ids
}

// givenBy returns the contact with an external id, or else the one with the given id, and keeps it
// until the transaction ends.
func (s *Service) givenBy(ctx context.Context, c *change.Change, id *publicid.Contact, by contacts.Person) (*publicid.Contact, error) {
	if by.ExternalUserID == nil {
		return id, keepContact(ctx, c, id)
	}
	found, err := s.contacts.Keep(ctx, c, by)
	if err != nil {
		return nil, err
	}
	return &found.ID, nil
}

// keepContact returns problem.NotFound unless the contact, if any, belongs to the organization. It
// prevents the contact's deletion until the transaction ends.
func keepContact(ctx context.Context, c *change.Change, id *publicid.Contact) error {
	if id == nil {
		return nil
	}
	_, err := c.Contact.Query().Where(contact.ID(*id)).ForShare(postgres.KeyShare).Only(ctx)
	if db.IsNotFound(err) {
		return problem.MissingIn("contactId", "contact")
	}
	if err != nil {
		return errors.Wrap(err, "look up the contact")
	}
	return nil
}
