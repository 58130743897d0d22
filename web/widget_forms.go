package web

import (
	"context"
	"net/http"
	"strings"

	"earshot/ent/db"
)

// The forms in the widget's frame are those of the board, for people whom nobody knows: whoever
// frames a page chooses what lies above it, so no press of a button there may be enough. The frame
// reads no cookie and sets none, and what is sent counts once a link was used that leads to the
// board's own page, which nobody can frame.

// framed reports whether a page stands in the widget's frame.
func (v *visit) framed() bool { return strings.HasPrefix(v.at, FrameRoot) }

// actsInFrame gives what an actor answers the policy of its organization.
func actsInFrame(do actor) actor {
	return func(ctx context.Context, a *acting) (*answer, error) {
		return inFrame(func(ctx context.Context, _ *visit) (*answer, error) { return do(ctx, a) })(ctx, a.visit)
	}
}

// siteOf is what the pages of forms have in common.
func (v *visit) siteOf(b *db.Board) view {
	if v.framed() {
		return v.frameSite(b, "")
	}
	return v.boardSite(b, "")
}

// template is that of a page which is in the frame, too.
func (v *visit) template(name string) string {
	if v.framed() {
		return "frame_" + name
	}
	return name
}

// boardAt is the page of the board on this side.
func (v *visit) boardAt(b *db.Board) string {
	if v.framed() {
		return framePath(v.org, b)
	}
	return boardPath(v.org, b)
}

// sentAt is where a form leads that was taken.
func (v *visit) sentAt(b *db.Board) string {
	if v.framed() {
		return framePath(v.org, b) + "/-/sent"
	}
	return workspacePath(v.org) + "/-/sent"
}

// frameSent says to look into the mailbox.
func (p *Pages) frameSent(ctx context.Context, v *visit) (*answer, error) {
	b, err := p.onBoard(ctx, v)
	if err != nil {
		return nil, err
	}
	of := v.frameSite(b, "")
	of.Title = v.words.Text("sent.title")
	of.Content = doneContent{Text: v.words.Text("sent.text"), Link: framePath(v.org, b), Words: v.words.Text("posts")}
	return v.page(http.StatusOK, "frame_done", of)
}
