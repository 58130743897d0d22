package web

import (
	"context"
	"net/http"
	"slices"

	"earshot/ent/db"
	"earshot/internal/interactions"
	"earshot/internal/problem"
)

// doneContent is a page that says what happened, and leads on.
type doneContent struct {
	// Text is what there is to say; empty is what the page says by itself.
	Text string
	// Button posts Token to Action; empty is none.
	Button, Action, Token string
	// Link and Words lead on; empty is nowhere.
	Link, Words string
	// Wish is what the button is for; nil where there is none.
	Wish *wish
}

// wish is what somebody wants who gave the address: it may have been somebody else than who reads
// the e-mail.
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

// sent says to look into the mailbox. It is the same page for everybody.
func (p *Pages) sent(ctx context.Context, v *visit) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	return v.done(http.StatusOK, "sent", doneContent{Link: workspacePath(v.org), Words: v.words.Text("boards")})
}

// waits says that what was written appears once somebody has looked at it.
func (p *Pages) waits(ctx context.Context, v *visit) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	return v.done(http.StatusOK, "waits", doneContent{Link: workspacePath(v.org), Words: v.words.Text("boards")})
}

// link is where the link of an e-mail leads. It changes nothing: programs that look for viruses
// follow links, and press no buttons.
func (p *Pages) link(ctx context.Context, a *acting) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	token := a.r.URL.Query().Get("token")
	wanted, by, err := p.Interactions.Pending(ctx, token)
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

// aboutOf is the board that something is for, and its name or that of the post.
func (p *Pages) aboutOf(ctx context.Context, wanted *interactions.Wanted) (*db.Board, string, error) {
	if wanted.Kind == interactions.Post {
		b, err := p.Feedback.Board(ctx, wanted.Board)
		if err != nil {
			return nil, "", err
		}
		return b, b.Name, nil
	}
	one, err := p.Feedback.Post(ctx, wanted.Post)
	if err != nil {
		return nil, "", err
	}
	b, err := p.Feedback.Board(ctx, one.BoardID)
	return b, one.Title, err
}

// confirm is the button. Behind the commit nothing is asked any more that could fail: what it came
// to is a page of its own, which may be loaded again.
func (p *Pages) confirm(ctx context.Context, a *acting) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	if err := p.mustBeOpen(a.visit); err != nil {
		return nil, err
	}
	confirmed, err := p.Interactions.Confirm(ctx, a.form.Get("token"), a.form.Get("optIn") != "", a.words.Tag.String())
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

// confirmed says what was confirmed. It is the same page for everybody.
func (p *Pages) confirmed(ctx context.Context, v *visit) (*answer, error) {
	kind := v.path("kind")
	if !slices.Contains(interactions.Kinds, interactions.Kind(kind)) {
		return nothing(ctx, v)
	}
	b, one, err := p.onPost(ctx, v)
	if err != nil {
		return nil, err
	}
	return v.done(http.StatusOK, "confirmed."+kind, doneContent{Link: postPath(v.org, b, one.Post), Words: one.Title})
}

// over says that a link does nothing, any more or at all.
func (a *acting) over() (*answer, error) {
	return a.done(http.StatusGone, "over", doneContent{Link: workspacePath(a.org), Words: a.words.Text("boards")})
}

// forms are those of end-users, by their paths below a root.
func forms(root string) map[string]interactions.Kind {
	return map[string]interactions.Kind{
		root + "{workspace}/{board}/-/new":            interactions.Post,
		root + "{workspace}/{board}/{post}/-/vote":    interactions.Vote,
		root + "{workspace}/{board}/{post}/-/comment": interactions.Comment,
	}
}
