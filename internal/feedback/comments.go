package feedback

import (
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// NewComment has the values of a new comment. A comment with a ParentID is a reply. If By names no
// contact, the author is the caller.
type NewComment struct {
	Body     Body
	ParentID *string
	By       contacts.Person
}

// CreateComment adds a comment or a reply to a post and records comment.created. If the post is
// merged, the comment goes to the target of the merge. Replies nest one level: a reply to a reply
// is problem.Validation.
func (s *Service) CreateComment(ctx context.Context, on publicid.Post, in NewComment) (*db.Comment, error) {
	var bad problem.Fields
	in.Body.check(&bad, 1)
	in.By.Check(&bad)
	var parent *publicid.Comment
	if in.ParentID != nil {
		id := publicid.Read[publicid.Comment](*in.ParentID)
		parent = &id
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	author, at := change.CallerOf(ctx).User, store.Now()
	hash := s.emailHash(author.Email)
	row := &db.Comment{
		ID: publicid.NewComment(), OrganizationID: author.OrganizationID, PostID: on, ParentID: parent,
		BodyText: in.Body.Text, BodyJSON: in.Body.document(), AuthorUserID: &author.ID, EmailHash: &hash, CreatedAt: at, UpdatedAt: at,
	}
	if in.Body.size() <= maxSharedBodyBytes && !in.By.Named() {
		if made, err := s.commentGroup.Do(ctx, row); made != nil || err != nil {
			return made, err
		}
	}
	return s.createComment(ctx, row, in.By)
}

// createComments makes the comments of a group. It leaves out a comment if its post does not exist
// or is merged, or if its parent does not take replies.
func createComments(ctx context.Context, j *change.Joint, in []*db.Comment) ([]*db.Comment, error) {
	posts := make([]publicid.Post, len(in))
	var parents []publicid.Comment
	for i, row := range in {
		posts[i] = row.PostID
		if row.ParentID != nil {
			parents = append(parents, *row.ParentID)
		}
	}
	var found []store.LockedPost
	var answered []store.Parent
	j.LockPosts(posts, j.Wait, &found)
	if len(parents) > 0 {
		j.Parents(parents, &answered)
	}
	if err := j.Read(ctx); err != nil {
		return nil, err
	}
	locked := unmerged(found)
	out := make([]*db.Comment, len(in))
	var fresh []*db.Comment
	for i, row := range in {
		p, ok := locked[row.PostID]
		if !ok || j.IsTaken(i) || row.ParentID != nil && !slices.Contains(answered, store.Parent{ID: *row.ParentID, Post: p.ID}) {
			continue
		}
		fresh, out[i] = append(fresh, row), row
		if err := j.Record(i, row.ID.UUID(), row.CreatedAt, commentCreated(p.Board, row)); err != nil {
			return nil, err
		}
	}
	if len(fresh) > 0 {
		j.InsertComments(fresh, j.Happened, &j.Made)
	}
	return out, nil
}

// unmerged returns the locked posts that are not merged, by id.
func unmerged(found []store.LockedPost) map[publicid.Post]store.LockedPost {
	byID := make(map[publicid.Post]store.LockedPost, len(found))
	for _, p := range found {
		if !p.Merged {
			byID[p.ID] = p
		}
	}
	return byID
}

// createComment makes a comment in a transaction of its own. It also handles merged posts.
func (s *Service) createComment(ctx context.Context, in *db.Comment, by contacts.Person) (made *db.Comment, err error) {
	err = s.changes.Run(ctx, func(c *change.Change) error {
		p, err := lockVotable(ctx, c, in.PostID)
		if err != nil {
			return err
		}
		if err := mustTakeReplies(ctx, c, p.ID, in.ParentID); err != nil {
			return err
		}
		if err := s.writtenBy(ctx, c, in, by); err != nil {
			return err
		}
		row := c.Comment.Create().
			SetID(in.ID).SetPostID(p.ID).SetNillableParentID(in.ParentID).SetBodyText(in.BodyText).
			SetNillableAuthorUserID(in.AuthorUserID).SetNillableContactID(in.ContactID).SetEmailHash(*in.EmailHash).
			SetCreatedAt(in.CreatedAt).SetUpdatedAt(in.UpdatedAt)
		if in.BodyJSON != nil {
			row.SetBodyJSON(in.BodyJSON)
		}
		if made, err = row.Save(ctx); err != nil {
			return errors.Wrap(err, "insert the comment")
		}
		if err := count(ctx, c, p, 0, 1); err != nil {
			return err
		}
		return c.Record(event.CommentCreated, commentCreated(p.BoardID, made))
	})
	return made, err
}

// writtenBy sets the contact in by, if any, as the comment's author.
func (s *Service) writtenBy(ctx context.Context, c *change.Change, row *db.Comment, by contacts.Person) error {
	if !by.Named() {
		return nil
	}
	found, err := s.contacts.Keep(ctx, c, by)
	if err != nil {
		return err
	}
	author, err := guest(ctx, c, found)
	if err != nil {
		return err
	}
	row.AuthorUserID, row.ContactID, row.EmailHash = &author.ID, &found.ID, contactsHash(found)
	if row.EmailHash == nil {
		// The contact has no address. Set a hash all the same, so that HashAuthors skips the row.
		hash := s.emailHash(author.Email)
		row.EmailHash = &hash
	}
	return nil
}

func commentCreated(on publicid.Board, c *db.Comment) event.Payload {
	return &event.CommentCreatedPayload{
		BoardHead: event.BoardHead{BoardID: on},
		Comment: event.Comment{
			ID: c.ID, PostID: c.PostID, ParentID: c.ParentID, AuthorUserID: *c.AuthorUserID,
			BodyText: c.BodyText, CreatedAt: c.CreatedAt,
		},
	}
}

// mustTakeReplies checks that the parent, if any, is a top-level comment of the same post.
func mustTakeReplies(ctx context.Context, c *change.Change, on publicid.Post, parent *publicid.Comment) error {
	if parent == nil {
		return nil
	}
	found, err := c.Comment.Query().Where(comment.ID(*parent), comment.PostID(on)).Only(ctx)
	if db.IsNotFound(err) {
		return problem.MissingIn("parentId", "comment on this post")
	}
	if err != nil {
		return errors.Wrap(err, "load the parent comment")
	}
	if found.ParentID != nil {
		return problem.Invalid("parentId", "oneLevel", "is a reply itself; replies nest one level only")
	}
	return nil
}
