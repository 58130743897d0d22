package web

import (
	"context"
	"html/template"
	"time"

	"earshot/ent/db"
	"earshot/internal/feedback"
	"earshot/internal/page"
	"earshot/internal/publicid"
	"earshot/web/markup"
)

// commentsOnPage is as many as a person reads at a time.
const commentsOnPage = 25

type postContent struct {
	shownPost
	pager
	Body template.HTML
	// MergedInto is the post that this post was merged into; nil if it was not merged.
	MergedInto *shownPost
	Threads    []*thread
	// Acts are the actions of the reader; nil if there are none.
	Acts *postActs
}

// postActs holds the paths of the reader's actions. A path is empty if the post doesn't take the
// action.
type postActs struct {
	Vote, Unvote, Comment, Forget string
	// Known is the e-mail address of a known visitor. This visitor's actions need no confirmation.
	// Voted is true if this visitor has voted for the post.
	Known string
	Voted bool
}

// actsOn returns the actions on a post.
func (p *Pages) actsOn(ctx context.Context, v *visit, at string, one *feedback.PublicPost) (acts *postActs, err error) {
	if !p.open(v) {
		return nil, nil
	}
	acts = &postActs{Unvote: at + "/-/unvote", Forget: workspacePath(v.org) + "/-/forget"}
	if one.NoVote == nil {
		acts.Vote = at + "/-/vote"
	}
	if one.NoComment == nil {
		acts.Comment = at + "/-/comment"
	}
	if v.visitor != nil {
		acts.Known = v.visitor.Email
		acts.Voted, err = p.PublicActions.HasVoted(ctx, *v.visitor, one.Post.Post)
	}
	return acts, err
}

// thread is a top-level comment with its replies. If a page begins in the middle of a thread, the
// replies stand alone.
type thread struct {
	shownComment
	Replies []shownComment
}

type shownComment struct {
	ID, Author string
	Deleted    bool
	Body       template.HTML
	CreatedAt  time.Time
}

// post shows a post with its comments, on the board or in the widget.
func (p *Pages) post(ctx context.Context, v *visit) (*answer, error) {
	b, one, err := p.onPost(ctx, v)
	if err != nil {
		return nil, err
	}
	at := v.boardAt(b)
	texts := p.converted.ForPage(v.words)
	content := postContent{shownPost: showPost(at, one.Post.Post), Body: texts.HTML(one.BodyJSON, one.BodyText)}
	if !v.framed() {
		content.Tags = v.tagged(one.Post)
	}
	if one.MergedInto != nil { // a merge stays on one board, so the path of this board is right
		target := showPost(at, one.MergedInto.Post)
		content.MergedInto = &target
	}
	comments, err := p.Feedback.Comments(ctx, one.ID, v.listed(commentsOnPage), page.Sync{})
	if err != nil {
		return nil, err
	}
	if content.Threads, err = p.threads(ctx, texts, comments.Items); err != nil {
		return nil, err
	}
	content.pager = v.pager(comments.NextCursor)
	if content.Acts, err = p.actsOn(ctx, v, content.Path, one); err != nil {
		return nil, err
	}
	of := v.siteOf(b, "")
	of.Title, of.Description = one.Title+" – "+of.Title, markup.Excerpt(one.BodyText)
	of.Canonical, of.Image = v.base+content.Path, v.base+content.Path+"/image.png"
	of.Frame.Board += "/" + one.Slug
	of.Hidden, of.Content = v.query.Has("cursor"), content
	return v.found("post", of)
}

// onPost loads the post of the address.
func (p *Pages) onPost(ctx context.Context, v *visit) (*db.Board, *feedback.PublicPost, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	one, err := p.Feedback.PublicPost(ctx, b, v.path("post"))
	return b, one, err
}

// threads puts replies below their comment. It names authors who are members and shows no other
// personal data.
func (p *Pages) threads(ctx context.Context, texts *markup.Bodies, comments []*db.Comment) ([]*thread, error) {
	var authors []publicid.User
	for _, c := range comments {
		if c.AuthorUserID != nil {
			authors = append(authors, *c.AuthorUserID)
		}
	}
	by, err := p.Feedback.Authors(ctx, authors)
	if err != nil {
		return nil, err
	}
	var all []*thread
	begun := map[publicid.Comment]*thread{}
	for _, c := range comments {
		shown := showComment(texts, c, by)
		if c.ParentID != nil && begun[*c.ParentID] != nil {
			parent := begun[*c.ParentID]
			parent.Replies = append(parent.Replies, shown)
			continue
		}
		t := &thread{shownComment: shown}
		begun[c.ID] = t
		all = append(all, t)
	}
	return all, nil
}

func showComment(texts *markup.Bodies, c *db.Comment, by map[publicid.User]feedback.Author) shownComment {
	shown := shownComment{ID: c.ID.String(), CreatedAt: c.CreatedAt, Deleted: c.DeletedAt != nil}
	if shown.Deleted {
		return shown
	}
	if c.AuthorUserID != nil {
		shown.Author = by[*c.AuthorUserID].Name
	}
	if shown.Author == "" {
		shown.Author = texts.Words.Text(unnamed(c, by))
	}
	shown.Body = texts.HTML(c.BodyJSON, c.BodyText)
	return shown
}

// unnamed returns the message for an author without a name.
func unnamed(c *db.Comment, by map[publicid.User]feedback.Author) string {
	if c.AuthorUserID == nil || by[*c.AuthorUserID].Guest {
		return "author.customer"
	}
	return "author.former"
}
