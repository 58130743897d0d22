package web

import (
	"context"
	"net/http"

	"earshot/internal/problem"
	"earshot/internal/subscribers"
)

// unsubscribePath is what e-mails to end-users name as the address that ends them (RFC 8058). Whoever
// reads it gets the page to choose on, because programs that look for viruses follow links.
const unsubscribePath = Root + "{workspace}/-/unsubscribe"

type preferencesContent struct {
	Action, Token            string
	StatusUpdates, Changelog bool
	// Kept says that this was just chosen.
	Kept bool
}

// preferences is the page on which somebody chooses what to be told of by e-mail. Whose it is the link
// knows, and it shows nothing of the person.
func (p *Pages) preferences(ctx context.Context, a *acting) (*answer, error) {
	token := a.r.URL.Query().Get("token")
	chosen, err := p.Subscribers.Chosen(ctx, token)
	if problem.Is(err, problem.NotFound) {
		return p.nobody(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	return a.showPreferences(token, chosen, false)
}

func (a *acting) showPreferences(token string, chosen subscribers.Choice, kept bool) (*answer, error) {
	of := a.site()
	of.Title, of.Hidden = a.words.Text("preferences.title"), true
	of.Content = preferencesContent{
		Action: workspacePath(a.org) + "/-/preferences", Token: token, StatusUpdates: chosen.StatusUpdates, Changelog: chosen.Changelog, Kept: kept,
	}
	return a.page(http.StatusOK, "preferences", of)
}

// choose is its form.
func (p *Pages) choose(ctx context.Context, a *acting) (*answer, error) {
	token := a.form.Get("token")
	chosen := subscribers.Choice{
		StatusUpdates: a.form.Get("statusUpdates") != "", Changelog: a.form.Get("changelog") != "", Language: a.words.Tag.String(),
	}
	if a.form.Get("nothing") != "" { // the other button
		chosen.StatusUpdates, chosen.Changelog = false, false
	}
	err := p.Subscribers.Choose(ctx, token, chosen)
	if problem.Is(err, problem.NotFound) {
		return p.nobody(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	return a.showPreferences(token, chosen, true)
}

// unsubscribe is what a program of mail posts to when its user wants no more e-mails: at once, and
// without a cookie or a question.
func (p *Pages) unsubscribe(ctx context.Context, a *acting) (*answer, error) {
	err := p.Subscribers.Unsubscribe(ctx, a.r.URL.Query().Get("token"))
	if problem.Is(err, problem.NotFound) {
		return p.nobody(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	return a.done(http.StatusOK, "unsubscribed", doneContent{})
}

// nobody is for a link of somebody who isn't there, any more or at all. Where an organization shows
// nothing to everybody, that is as for all that isn't there.
func (p *Pages) nobody(ctx context.Context, a *acting) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	return a.done(http.StatusGone, "nobody", doneContent{Link: workspacePath(a.org), Words: a.words.Text("boards")})
}
