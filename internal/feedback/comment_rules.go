package feedback

import (
	"context"
	"time"

	"earshot/ent/db"
	"earshot/ent/db/user"
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// CommentablePost is a locked post that takes a comment. Only mayComment makes one, so that every
// comment passes its rules: those of members, contacts, visitors and tools, and those that wait for
// moderation.
type CommentablePost struct{ at Place }

// Shown returns the post and its board, as a page shows them.
func (p CommentablePost) Shown() (*db.Post, *db.Board) { return p.at.Post, p.at.board }

// mayComment is the gate of comments. It has the rules about the post and the board.
func mayComment(at Place, visitor bool) (CommentablePost, error) {
	return CommentablePost{at}, at.shownTo(visitor)
}

// LockForComment locks a post, or the target of its merge, for the comment of a visitor.
func (s *Service) LockForComment(ctx context.Context, c *change.Change, on publicid.Post) (CommentablePost, error) {
	at, err := lockVisitorsPlace(ctx, c, on)
	if err != nil {
		return CommentablePost{}, err
	}
	return mayComment(at, true)
}

// mayReply is the gate of replies: the parent is a top-level comment of the same post.
func mayReply(on CommentablePost, parent *db.Comment) error {
	if parent == nil || parent.PostID != on.at.ID {
		return problem.MissingIn("parentId", "comment on this post")
	}
	if parent.ParentID != nil {
		return problem.Invalid("parentId", "oneLevel", "is a reply itself; replies nest one level only")
	}
	return nil
}

// mayEditComment is the gate of edits: of the author, an owner or an admin, within the window. A
// window of 0 has no end.
func mayEditComment(by *db.User, old *db.Comment, window time.Duration, at time.Time) error {
	if !wrote(by, old) && *by.Role == user.RoleMember {
		return problem.RoleInsufficient.Problem()
	}
	if window > 0 && at.Sub(old.CreatedAt) > window {
		return problem.EditWindowExpired.Problem()
	}
	return nil
}

func wrote(by *db.User, c *db.Comment) bool { return c.AuthorUserID != nil && *c.AuthorUserID == by.ID }
