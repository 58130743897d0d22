package web

import (
	"context"
	"net/http"
	"slices"

	"earshot/ent/db"
	"earshot/internal/problem"
	"earshot/internal/publicactions"
)

// doneContent is a page that reports an outcome and links to another page.
type doneContent struct {
	// Text is the message; empty means the default text of the page.
	Text string
	// Button posts Token to Action; empty means no button.
	Button, Action, Token string
	// Link and Words are the target and the text of the link; empty means no link.
	Link, Words string
	// Wish is the action that the button confirms; nil if the page has no button.
	Wish *wish
}

// wish describes the requested action. The reader of the e-mail needs it, because another person
// may have entered the address.
type wish struct{ Kind, About, Name, Title, Text string }

func (v *visit) done(status int, what string, content doneContent) (*answer, error) {
	of := v.site()
	of.Title, of.Hidden = v.words.Text(what+".title"), true
	if content.Text == "" {
		content.Text = v.words.Text(what + ".text")
	}
	of.Content = content
	return v.page(status, "done", of)
}

// sent asks the visitor to check the mailbox. The page is the same for all visitors.
func (p *Pages) sent(ctx context.Context, v *visit) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	return v.done(http.StatusOK, "sent", doneContent{Link: workspacePath(v.org), Words: v.words.Text("boards")})
}

// waits reports that the text appears once a moderator has approved it. The page is the same for
// all visitors.
func (p *Pages) waits(ctx context.Context, v *visit) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	return v.done(http.StatusOK, "waits", doneContent{Link: workspacePath(v.org), Words: v.words.Text("boards")})
}

// link is the target of the link in an e-mail. It changes nothing, because virus scanners follow
// links but press no buttons.
func (p *Pages) link(ctx context.Context, a *acting) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	token := a.r.URL.Query().Get("token")
	wanted, by, err := p.PublicActions.Pending(ctx, token)
	if problem.Is(err, problem.NotFound) {
		return a.over()
	}
	if err != nil {
		return nil, err
	}
	b, about, err := p.aboutOf(ctx, wanted)
	if problem.Is(err, problem.NotFound) {
		return a.over()
	}
	if err != nil {
		return nil, err
	}
	content := doneContent{
		Button: a.words.Text("confirm"), Action: workspacePath(a.org) + "/-/confirm", Token: token,
		Wish: &wish{Kind: string(wanted.Kind), About: about, Name: by.Name, Title: wanted.Title, Text: wanted.Text},
	}
	if moderated(b, wanted.Kind) {
		content.Text = a.words.Text("confirm.moderated")
	}
	return a.done(http.StatusOK, "confirm."+string(wanted.Kind), content)
}

// aboutOf returns the board of an action, and the name of the board or the title of the post. A board
// that has become private is problem.NotFound, because the link may belong to a stranger.
func (p *Pages) aboutOf(ctx context.Context, wanted *publicactions.Wanted) (*db.Board, string, error) {
	on, title := wanted.Board, ""
	if wanted.Kind != publicactions.Post {
		one, err := p.Feedback.Post(ctx, wanted.Post)
		if err != nil {
			return nil, "", err
		}
		on, title = one.BoardID, one.Title
	}
	b, err := p.Feedback.PublicBoardByID(ctx, on)
	if err != nil {
		return nil, "", err
	}
	if wanted.Kind == publicactions.Post {
		title = b.Name
	}
	return b, title, nil
}

// confirm handles the button. Nothing after the commit can fail. The result is a page of its own
// that can be reloaded.
func (p *Pages) confirm(ctx context.Context, a *acting) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	if err := p.mustBeOpen(a.visit); err != nil {
		return nil, err
	}
	confirmed, err := p.PublicActions.Confirm(ctx, a.form.Get("token"), p.network(a.r), a.form.Get("optIn") != "", a.words.Tag.String())
	if problem.Is(err, problem.NotFound) {
		return a.over()
	}
	if err != nil {
		return nil, err
	}
	at := workspacePath(a.org) + "/-/waits"
	if !confirmed.Waits {
		at = postPath(a.org, confirmed.Board, confirmed.Post) + "/-/confirmed/" + string(confirmed.Kind)
	}
	to := redirect(at)
	to.cookie = p.remember(a.visit, confirmed.By)
	return to, nil
}

// confirmed reports which action was confirmed. The page is the same for all visitors.
func (p *Pages) confirmed(ctx context.Context, v *visit) (*answer, error) {
	kind := v.path("kind")
	if !slices.Contains(publicactions.Kinds, publicactions.Kind(kind)) {
		return nothing(ctx, v)
	}
	b, one, err := p.onPost(ctx, v)
	if err != nil {
		return nil, err
	}
	return v.done(http.StatusOK, "confirmed."+kind, doneContent{Link: postPath(v.org, b, one.Post.Post), Words: one.Title})
}

// over reports that a link is invalid, expired or used.
func (a *acting) over() (*answer, error) {
	return a.done(http.StatusGone, "over", doneContent{Link: workspacePath(a.org), Words: a.words.Text("boards")})
}

// forms maps the paths of the end-users' forms below a root to their kinds.
func forms(root string) map[string]publicactions.Kind {
	return map[string]publicactions.Kind{
		root + "{workspace}/{board}/-/new":            publicactions.Post,
		root + "{workspace}/{board}/{post}/-/vote":    publicactions.Vote,
		root + "{workspace}/{board}/{post}/-/comment": publicactions.Comment,
	}
}
