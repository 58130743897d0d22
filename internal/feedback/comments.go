package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// NewComment is what to make a comment of. ParentID makes it a reply.
type NewComment struct {
	Body     Body
	ParentID *string
}

// CreateComment adds a comment or a reply to a post, or to the one that it was
// merged into, and records comment.created. Replies nest one level: a reply to a reply is
// problem.Validation.
func (s *Service) CreateComment(ctx context.Context, on publicid.Post, in NewComment) (*db.Comment, error) {
	var bad problem.Fields
	in.Body.check(&bad, 1)
	var parent *publicid.Comment
	if in.ParentID != nil {
		id := publicid.Read[publicid.Comment](*in.ParentID)
		parent = &id
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	var made *db.Comment
	err := s.changes.Run(ctx, func(c *change.Change) error {
		p, err := lockVotable(ctx, c, on)
		if err != nil {
			return err
		}
		if err := mustTakeReplies(ctx, c, p.ID, parent); err != nil {
			return err
		}
		at, author := store.Now(), c.Caller.User.ID
		row := c.Comment.Create().
			SetPostID(p.ID).SetNillableParentID(parent).SetBodyText(in.Body.Text).
			SetAuthorUserID(author).SetEmailHash(s.emailHash(c.Caller.User.Email)).SetCreatedAt(at).SetUpdatedAt(at)
		if document := in.Body.document(); document != nil {
			row.SetBodyJSON(document)
		}
		if made, err = row.Save(ctx); err != nil {
			return errors.Wrap(err, "insert the comment")
		}
		if err := count(ctx, c, p, 0, 1); err != nil {
			return err
		}
		return c.Record(ctx, event.CommentCreated, &event.CommentCreatedPayload{
			BoardHead: event.BoardHead{BoardID: p.BoardID},
			Comment: event.Comment{
				ID: made.ID, PostID: p.ID, ParentID: parent, AuthorUserID: author,
				BodyText: made.BodyText, CreatedAt: made.CreatedAt,
			},
		})
	})
	return made, err
}

// mustTakeReplies checks that the parent, if any, is a top-level comment of the
// same post.
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
