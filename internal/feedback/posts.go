package feedback

import (
	"context"
	"maps"
	"slices"
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/ent/db/post"
	"earshot/ent/db/posttag"
	"earshot/ent/db/predicate"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
	"earshot/internal/store"
)

// Post is a post with its tags, oldest tag first.
type Post struct {
	*db.Post
	TagIDs []publicid.Tag
	// Revenue is set in a list by revenue only.
	Revenue *Revenue
}

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

// CreatePost adds a post to a board and records post.created. A missing contact or tag is
// problem.NotFound, with the member in details.field.
func (s *Service) CreatePost(ctx context.Context, on publicid.Board, in NewPost) (*Post, error) {
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
		id := publicid.Read[publicid.Contact](*in.By.ID)
		row.ContactID = &id
	}
	if len(tags) == 0 && in.By.ExternalUserID == nil && in.Body.size() <= maxSharedBodyBytes {
		if made, err := s.postGroup.Do(ctx, row); made != nil || err != nil {
			return made, err
		}
	}
	return s.createPost(ctx, row, tags, in.By)
}

// createPosts makes the posts of a group, without tags. It leaves out a post if its board or
// contact does not exist, or if the slug of its title is taken.
func createPosts(ctx context.Context, j *change.Joint, in []*db.Post) ([]*Post, error) {
	var boards []publicid.Board
	var from []publicid.Contact
	for _, row := range in {
		boards = append(boards, row.BoardID)
		if row.ContactID != nil {
			from = append(from, *row.ContactID)
		}
	}
	var keptBoards []publicid.Board
	var keptContacts []publicid.Contact
	j.KeepBoards(boards, &keptBoards)
	if len(from) > 0 {
		j.KeepContacts(from, &keptContacts)
	}
	if err := j.Read(ctx); err != nil {
		return nil, err
	}
	out := make([]*Post, len(in))
	var fresh []*db.Post
	for i, row := range in {
		if j.IsTaken(i) || !slices.Contains(keptBoards, row.BoardID) || row.ContactID != nil && !slices.Contains(keptContacts, *row.ContactID) {
			continue
		}
		row.Slug = slug.From(row.Title, "post", maxPostSlug)
		fresh, out[i] = append(fresh, row), &Post{Post: row}
		if err := j.Record(i, row.ID.UUID(), row.CreatedAt, postCreated(row)); err != nil {
			return nil, err
		}
	}
	if len(fresh) > 0 {
		j.InsertPosts(fresh, j.Happened, &j.Made)
	}
	return out, nil
}

// createPost makes a post in a transaction of its own, with tags and under a free slug. It also finds
// the contact of an external id.
func (s *Service) createPost(ctx context.Context, row *db.Post, tags []publicid.Tag, by contacts.Person) (*Post, error) {
	made := &Post{Post: row}
	err := s.changes.Run(ctx, func(c *change.Change) (err error) {
		if err := keepBoard(ctx, c, row.BoardID); err != nil {
			return err
		}
		if row.ContactID, err = s.givenBy(ctx, c, row.ContactID, by); err != nil {
			return err
		}
		if made.TagIDs, err = mustHaveTags(ctx, c, row.BoardID, tags); err != nil {
			return err
		}
		if err := insertPost(ctx, c, row); err != nil {
			return err
		}
		if err := tagPost(ctx, c, row.ID, made.TagIDs); err != nil {
			return err
		}
		return c.Record(event.PostCreated, postCreated(row))
	})
	return made, err
}

func postCreated(p *db.Post) event.Payload {
	return &event.PostCreatedPayload{BoardHead: event.BoardHead{BoardID: p.BoardID}, Post: eventPost(p)}
}

func newPost(on publicid.Board, in NewPost) *db.Post {
	at := store.Now()
	return &db.Post{
		ID: publicid.NewPost(), BoardID: on, Title: in.Title, Status: post.DefaultStatus,
		BodyText: in.Body.Text, BodyJSON: in.Body.document(),
		CreatedAt: at, UpdatedAt: at, LastActivityAt: at,
	}
}

// insertPost inserts the post under a free slug and sets p.Slug.
func insertPost(ctx context.Context, c *change.Change, p *db.Post) error {
	insert := func(name string) (bool, error) {
		p.Slug = name
		row := c.Post.Create().
			SetID(p.ID).SetBoardID(p.BoardID).SetTitle(p.Title).SetSlug(name).SetStatus(p.Status).
			SetBodyText(p.BodyText).SetNillableContactID(p.ContactID).SetNillableAuthorUserID(p.AuthorUserID).
			SetCreatedAt(p.CreatedAt).SetUpdatedAt(p.UpdatedAt).SetLastActivityAt(p.LastActivityAt)
		if p.BodyJSON != nil {
			row.SetBodyJSON(p.BodyJSON)
		}
		return store.Inserted(row.OnConflict(sql.DoNothing()).Exec(ctx))
	}
	taken := func(name string) (bool, error) {
		return store.Exists(ctx, c.Post.Query().Where(post.BoardID(p.BoardID), post.Slug(name), post.DeletedAtIsNil()))
	}
	return slug.Free(slug.From(p.Title, "post", maxPostSlug), maxPostSlug, taken, insert)
}

func tagPost(ctx context.Context, c *change.Change, id publicid.Post, tags []publicid.Tag) error {
	if len(tags) == 0 {
		return nil
	}
	rows := make([]*db.PostTagCreate, len(tags))
	for i, t := range tags {
		rows[i] = c.PostTag.Create().SetPostID(id).SetTagID(t)
	}
	if err := c.PostTag.CreateBulk(rows...).Exec(ctx); err != nil {
		return errors.Wrap(err, "tag the post")
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
	_, err := c.Contact.Query().Where(contact.ID(*id)).ForShare(store.KeyShare).Only(ctx)
	if db.IsNotFound(err) {
		return problem.MissingIn("contactId", "contact")
	}
	if err != nil {
		return errors.Wrap(err, "look up the contact")
	}
	return nil
}

// Post loads one post.
func (s *Service) Post(ctx context.Context, id publicid.Post) (*Post, error) {
	p, err := s.reads.Do(ctx, change.CallerOf(ctx).Organization.ID, id)
	if err != nil {
		return nil, err
	}
	if p == nil || p.DeletedAt != nil {
		return nil, problem.Missing("post")
	}
	return wholePost(p), nil
}

func (s *Service) mustHavePost(ctx context.Context, id publicid.Post) error {
	ok, err := store.Exists(ctx, s.store.Client().Post.Query().Where(post.ID(id), post.DeletedAtIsNil()))
	if err != nil {
		return errors.Wrap(err, "look up the post")
	}
	if !ok {
		return problem.Missing("post")
	}
	return nil
}

func tagsOf(ctx context.Context, client *db.PostTagClient, id publicid.Post) ([]publicid.Tag, error) {
	rows, err := client.Query().Where(posttag.PostID(id)).Order(db.Asc(posttag.FieldTagID)).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the post's tags")
	}
	ids := make([]publicid.Tag, len(rows))
	for i, r := range rows {
		ids[i] = r.TagID
	}
	return ids, nil
}

// lockPost loads and locks a live post until the transaction ends.
func lockPost(ctx context.Context, c *change.Change, id publicid.Post) (*db.Post, error) {
	p, err := c.Post.Query().Where(post.ID(id), post.DeletedAtIsNil()).ForUpdate(store.NoKeyUpdate).Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("post")
	}
	if err != nil {
		return nil, errors.Wrap(err, "lock the post")
	}
	return p, nil
}

// votable is a locked post that takes votes and comments, or the reason why there is none.
type votable struct {
	*db.Post
	err error
}

// lockVotables locks posts for votes and comments. For a merged post it locks and returns the target
// of the merge, as long as the target exists. The posts have only their identity. The result has the
// order of ids. A missing post is problem.NotFound, or change.ErrHeld unless the change waits:
// another transaction may hold the post.
func lockVotables(ctx context.Context, c *change.Change, ids []publicid.Post) ([]votable, error) {
	found, err := store.LockVotables(ctx, c.Tx, c.Caller.Organization.ID, ids, !c.Waits)
	if err != nil {
		return nil, err
	}
	all := make([]votable, len(ids))
	for i, id := range ids {
		p := found[id]
		switch {
		case p != nil && p.MergedIntoID == nil:
			all[i].Post = p
		case p != nil && found[*p.MergedIntoID] != nil:
			all[i].Post = found[*p.MergedIntoID]
		case !c.Waits:
			all[i].err = change.ErrHeld
		case p == nil:
			all[i].err = problem.Missing("post")
		default:
			there, err := store.Exists(ctx, c.Post.Query().Where(post.ID(*p.MergedIntoID), post.DeletedAtIsNil()))
			if err != nil {
				return nil, errors.Wrap(err, "look up the post that was merged into")
			}
			if all[i].Post = p; there {
				all[i].err = store.ErrAgain // the merge was made while this transaction waited for the lock
			}
		}
	}
	return all, nil
}

// lockVotable is lockVotables for one post.
func lockVotable(ctx context.Context, c *change.Change, id publicid.Post) (*db.Post, error) {
	found, err := lockVotables(ctx, c, []publicid.Post{id})
	if err != nil {
		return nil, err
	}
	return found[0].Post, found[0].err
}

// tally has the changes of the counters of locked posts.
type tally map[publicid.Post]store.PostCount

// add adds to the counters of a post. The last time is the one that counts.
func (t tally) add(n store.PostCount) {
	before := t[n.Post]
	n.Votes, n.Comments = n.Votes+before.Votes, n.Comments+before.Comments
	t[n.Post] = n
}

func (t tally) write(ctx context.Context, c *change.Change) error {
	return store.CountOnPosts(ctx, c.Tx, c.Caller.Organization.ID, slices.Collect(maps.Values(t)))
}

// lockPosts loads and locks live posts until the transaction ends. It locks them in the order of
// their ids, as all transactions do.
func lockPosts(ctx context.Context, c *change.Change, which predicate.Post) (map[publicid.Post]*db.Post, error) {
	rows, err := c.Post.Query().Where(which, post.DeletedAtIsNil()).Order(db.Asc(post.FieldID)).ForUpdate(store.NoKeyUpdate).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "lock the posts")
	}
	byID := make(map[publicid.Post]*db.Post, len(rows))
	for _, p := range rows {
		byID[p.ID] = p
	}
	return byID, nil
}

// lockIDs locks live posts in the order of their ids. It does not load them, because there may be
// many.
func lockIDs(ctx context.Context, c *change.Change, lock sql.LockOption, which predicate.Post) ([]publicid.Post, error) {
	rows, err := c.Post.Query().Where(which, post.DeletedAtIsNil()).Order(db.Asc(post.FieldID)).
		ForUpdate(lock).Select(post.FieldID).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "lock the posts")
	}
	ids := make([]publicid.Post, len(rows))
	for i, p := range rows {
		ids[i] = p.ID
	}
	return ids, nil
}

func eventPost(p *db.Post) event.Post {
	return event.Post{ID: p.ID, Title: p.Title, Slug: p.Slug, Status: string(p.Status), CreatedAt: p.CreatedAt}
}
