package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// UpdateComment replaces a comment's body. After the edit window, and for a member that is neither the
// author nor an owner or admin, it returns problem.Forbidden. A deleted comment is problem.NotFound. An
// edit of somebody else's comment leaves a line in the audit trail, because the page still names the author.
func (s *Service) UpdateComment(
	ctx context.Context, id publicid.Comment, body Body, q change.Request[*db.Comment],
) (*db.Comment, error) {
	var bad problem.Fields
	body.check(&bad, 1)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Comment, error) {
		_, old, err := lockComment(ctx, c, id)
		if err != nil {
			return nil, err
		}
		if err := q.CheckIfMatch(c, old); err != nil {
			return nil, err
		}
		at := postgres.Now()
		if err := mayEditComment(c.Caller.User, old, s.settings.CommentEditWindow, at); err != nil {
			return nil, err
		}
		update := c.Comment.UpdateOne(old)
		change.Differs(&body.Text, old.BodyText, update.SetBodyText)
		patchDocument(body, old.BodyJSON, update.SetBodyJSON, update.ClearBodyJSON)
		if change.Unchanged(update.Mutation()) {
			return old, nil
		}
		changed, err := update.SetUpdatedAt(at).Save(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "update the comment")
		}
		if !wrote(c.Caller.User, old) {
			c.Audit("updateComment", id)
		}
		return changed, nil
	})
}

// DeleteComment turns a comment into a tombstone, which keeps the comment's place without its body
// and author. Deleting it again is problem.NotFound.
func (s *Service) DeleteComment(ctx context.Context, id publicid.Comment, q change.Request[*db.Comment]) error {
	_, err := change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Comment, error) {
		p, old, err := lockComment(ctx, c, id)
		if err != nil {
			return nil, err
		}
		if err := q.CheckIfMatch(c, old); err != nil {
			return nil, err
		}
		at := postgres.Now()
		err = c.Comment.UpdateOne(old).SetBodyText("").ClearBodyJSON().ClearAuthorUserID().ClearContactID().ClearEmailHash().
			SetDeletedAt(at).SetUpdatedAt(at).Exec(ctx)
		if err != nil {
			return nil, errors.Wrap(err, "delete the comment")
		}
		c.Audit("deleteComment", id)
		return old, tally{p.ID: {Post: p.ID, Comments: -1}}.write(ctx, c)
	})
	return err
}

// lockComment loads and locks a live comment and its post until the transaction ends. Every
// transaction locks the post first. If a merge moved the comment before that, lockComment returns
// postgres.ErrAgain.
func lockComment(ctx context.Context, c *change.Change, id publicid.Comment) (*db.Post, *db.Comment, error) {
	query := c.Comment.Query().Where(comment.ID(id), comment.DeletedAtIsNil())
	seen, err := onlyComment(ctx, query.Clone())
	if err != nil {
		return nil, nil, err
	}
	p, err := lockPost(ctx, c, seen.PostID)
	gone := problem.Is(err, problem.NotFound)
	if err != nil && !gone {
		return nil, nil, err
	}
	found, err := onlyComment(ctx, query.Clone().ForUpdate())
	switch {
	case err != nil:
		return nil, nil, err
	case found.PostID != seen.PostID:
		return nil, nil, postgres.ErrAgain
	case gone:
		return nil, nil, problem.Missing("comment")
	}
	return p, found, nil
}

func onlyComment(ctx context.Context, query *db.CommentQuery) (*db.Comment, error) {
	found, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("comment")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the comment")
	}
	return found, nil
}
