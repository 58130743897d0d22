package web

import (
	"context"
	"strings"

	"earshot/ent/db"
)

// The forms in the widget's frame are those of the board, but they treat every visitor as unknown.
// The embedding site controls everything above the frame, so a click in the frame proves nothing.
// The frame therefore reads and sets no cookie. A form takes effect only through the link in an
// e-mail. The link leads to the board's own page, which no site can frame.

// framed reports whether a page is in the widget's frame.
func (v *visit) framed() bool { return strings.HasPrefix(v.at, FrameRoot) }

// actsInFrame gives the answer of an actor the policy of its organization.
func actsInFrame(do actor) actor {
	return func(ctx context.Context, a *acting) (*answer, error) {
		return inFrame(func(ctx context.Context, _ *visit) (*answer, error) { return do(ctx, a) })(ctx, a.visit)
	}
}

// siteOf returns the common parts of a page that exists on the board and in the frame. Each layout
// takes what it needs.
func (v *visit) siteOf(b *db.Board, current string) view {
	if v.framed() {
		return v.frameSite(b, current)
	}
	return v.boardSite(b, current)
}

// boardAt is the path of the board, either in the frame or outside it.
func (v *visit) boardAt(b *db.Board) string {
	if v.framed() {
		return framePath(v.org, b)
	}
	return boardPath(v.org, b)
}

// sentAt is the path of the page after an accepted form.
func (v *visit) sentAt(b *db.Board) string {
	if v.framed() {
		return framePath(v.org, b) + "/-/sent"
	}
	return workspacePath(v.org) + "/-/sent"
}

// frameSent asks the visitor to check the mailbox.
func (p *Pages) frameSent(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	of := v.frameSite(b, "")
	of.Title = v.words.Text("sent.title")
	of.Content = doneContent{Text: v.words.Text("sent.text"), Link: framePath(v.org, b), Words: v.words.Text("posts")}
	return v.found("done", of)
}
