package web

import (
	"context"
	"net/http"

	"earshot/internal/problem"
	"earshot/internal/subscribers"
)

// unsubscribePath is the address for unsubscribing in e-mails to end-users (RFC 8058). Reading it
// shows the page with the choices, because virus scanners follow links.
const unsubscribePath = Root + "{workspace}/-/unsubscribe"

type preferencesContent struct {
	Action, Token            string
	StatusUpdates, Changelog bool
	// Kept is true right after the choice was saved.
	Kept bool
}

// preferences shows the page on which a subscriber chooses among kinds of e-mails. The token in the
// link identifies the subscriber. The page shows no personal data.
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

// choose saves the submitted choice.
func (p *Pages) choose(ctx context.Context, a *acting) (*answer, error) {
	token := a.form.Get("token")
	chosen := subscribers.Choice{
		StatusUpdates: a.form.Get("statusUpdates") != "", Changelog: a.form.Get("changelog") != "", Language: a.words.Tag.String(),
	}
	if a.form.Get("nothing") != "" { // the second button of the form
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

// unsubscribe takes the POST of a mail program whose user wants no more e-mails. It takes effect
// without a cookie and without a question.
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

// nobody answers a link whose subscriber is unknown or deleted. Without a public board, the answer
// is the same as for any missing page.
func (p *Pages) nobody(ctx context.Context, a *acting) (*answer, error) {
	if err := p.mustShow(ctx); err != nil {
		return nil, err
	}
	return a.done(http.StatusGone, "nobody", doneContent{Link: workspacePath(a.org), Words: a.words.Text("boards")})
}
