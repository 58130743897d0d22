package web

import (
	"context"
	"net/http"
	"time"

	"earshot/ent/db"
	"earshot/internal/feedback"
	"earshot/internal/problem"
	"earshot/internal/publicactions"
)

// Forms of end-users. A form is a page of its own, so that the other pages stay the same for all
// visitors. Boards have forms, and so does the widget's frame (widget_forms.go).

// trap is a hidden field that only bots fill in.
const trap = "topic"

type formContent struct {
	Kind, Action, Back, About string
	// Known is the e-mail address of a known visitor. Other visitors enter theirs.
	Known                    string
	Name, Email, Title, Text string
	Stamp, Trap              string
	OptIn                    bool
	// Moderated is true if a moderator approves the text before it appears.
	Moderated bool
	// Bad holds the error messages by field.
	Bad map[string]string
	// Hint explains why the form is shown again.
	Hint string
}

// form shows an empty form.
func (p *Pages) form(kind publicactions.Kind) actor {
	return func(ctx context.Context, a *acting) (*answer, error) {
		b, one, err := p.subject(ctx, a, kind)
		if err != nil {
			return nil, err
		}
		return a.showForm(b, one, kind, http.StatusOK, formContent{Stamp: p.PublicActions.Stamp(a.at, time.Now())})
	}
}

// subject loads the subject of a form: a post, or the board for a new post. It fails if the
// organization takes no such form.
func (p *Pages) subject(ctx context.Context, a *acting, kind publicactions.Kind) (b *db.Board, one *feedback.PublicPost, err error) {
	if kind == publicactions.Post {
		b, err = p.onBoard(ctx, a.visit)
	} else {
		b, one, err = p.onPost(ctx, a.visit)
	}
	if err == nil {
		err = p.mustBeOpen(a.visit)
	}
	if err == nil {
		err = refusal(b, one, kind)
	}
	if err == nil && moderated(b, kind) {
		err = p.mustHaveRoom(ctx, b)
	}
	return b, one, err
}

// refusal returns the problem that the action of a visitor meets at its place, or nil.
func refusal(b *db.Board, one *feedback.PublicPost, kind publicactions.Kind) error {
	switch kind {
	case publicactions.Vote:
		return one.NoVote
	case publicactions.Comment:
		return one.NoComment
	default:
		return feedback.NoPost(b)
	}
}

// moderated reports whether every text of the kind needs approval on the board.
func moderated(b *db.Board, kind publicactions.Kind) bool {
	return b.Moderated && kind != publicactions.Vote
}

// mustHaveRoom fails if the moderation queue accepts no more for the board. The check runs before the
// visitor writes a text.
func (p *Pages) mustHaveRoom(ctx context.Context, b *db.Board) error {
	room, err := p.PublicActions.HasRoom(ctx, b.ID)
	if err == nil && !room {
		err = problem.QueueFull.Problem()
	}
	return err
}

func (a *acting) showForm(b *db.Board, one *feedback.PublicPost, kind publicactions.Kind, status int, content formContent) (*answer, error) {
	of := a.siteOf(b, "")
	of.Title = a.words.Text("form."+string(kind)) + " – " + of.Title
	of.Image, of.Hidden = "", true
	content.Kind, content.Action, content.Trap, content.Moderated = string(kind), a.at, trap, moderated(b, kind)
	content.Back, content.About = a.boardAt(b), b.Name
	if one != nil {
		content.Back, content.About = a.boardAt(b)+"/"+one.Slug, one.Title
	}
	if a.visitor != nil {
		content.Known = a.visitor.Email
	}
	of.Content = content
	return a.page(status, "form", of)
}

// submit handles a submitted form.
func (p *Pages) submit(kind publicactions.Kind) actor {
	return func(ctx context.Context, a *acting) (*answer, error) {
		b, one, err := p.subject(ctx, a, kind)
		if err != nil {
			return nil, err
		}
		wanted := publicactions.Wanted{
			Kind: kind, Board: b.ID, Title: a.form.Get("title"), Text: a.form.Get("text"), OptIn: a.form.Get("optIn") != "",
			Language: a.words.Tag.String(),
		}
		if one != nil {
			wanted.Post = one.ID
		}
		var done *answer
		if a.visitor != nil {
			done, err = p.atOnce(ctx, a, b, wanted)
		} else {
			done, err = p.ask(ctx, a, b, one, wanted)
		}
		if bad := a.bad(err); bad != nil {
			again := a.filled(bad)
			again.Stamp = a.form.Get("stamp")
			return a.showForm(b, one, kind, http.StatusUnprocessableEntity, again)
		}
		return done, err
	}
}

// atOnce acts for a known visitor.
func (p *Pages) atOnce(ctx context.Context, a *acting, b *db.Board, wanted publicactions.Wanted) (*answer, error) {
	done, err := p.PublicActions.Act(ctx, *a.visitor, wanted, a.form.Get("stamp"))
	if err != nil {
		return nil, err
	}
	if done.Waits {
		return redirect(workspacePath(a.org) + "/-/waits"), nil
	}
	return redirect(postPath(a.org, b, done.Post)), nil
}

// ask sends the confirmation link by e-mail. The answer is the same for every address.
func (p *Pages) ask(ctx context.Context, a *acting, b *db.Board, one *feedback.PublicPost, wanted publicactions.Wanted) (*answer, error) {
	if err := p.PublicActions.MayTry(ctx, p.network(a.r)); err != nil {
		return nil, err
	}
	sent := redirect(a.sentAt(b))
	if a.form.Get(trap) != "" {
		return sent, nil
	}
	by := publicactions.Sender{Email: a.form.Get("email"), Name: a.form.Get("name"), From: p.network(a.r)}
	if err := p.PublicActions.Check(&wanted, &by); err != nil {
		return nil, err
	}
	// A person who was too quick, or needed more than a day, sends the form again and loses
	// nothing.
	again, stamp := a.filled(nil), a.form.Get("stamp")
	switch p.PublicActions.PaceOf(a.at, stamp) {
	case publicactions.TooQuick:
		again.Hint, again.Stamp = a.words.Text("form.tooQuick"), stamp
		return a.showForm(b, one, wanted.Kind, http.StatusUnprocessableEntity, again)
	case publicactions.TooSlow, publicactions.Unknown:
		again.Hint, again.Stamp = a.words.Text("form.tooSlow"), p.PublicActions.Stamp(a.at, time.Now())
		return a.showForm(b, one, wanted.Kind, http.StatusUnprocessableEntity, again)
	case publicactions.Usual:
	}
	return sent, p.PublicActions.Ask(ctx, by, wanted, p.mailing(a, wanted.Kind))
}

// mailing is the e-mail with the link. It contains no text of the visitor, because the address may
// belong to another person.
func (p *Pages) mailing(a *acting, kind publicactions.Kind) publicactions.Mailing {
	subject := a.words.Text("mail."+string(kind)+".subject", a.org.Name)
	return publicactions.Mailing{
		Subject: subject,
		Text:    a.words.Text("mail."+string(kind)+".text", a.org.Name) + "\n\n" + publicactions.LinkPlace + "\n\n" + a.words.Text("mail.end") + "\n",
		Page:    a.base + workspacePath(a.org) + "/-/confirm",
	}
}

// filled returns the form's content as it was submitted.
func (a *acting) filled(bad map[string]string) formContent {
	return formContent{
		Name: a.form.Get("name"), Email: a.form.Get("email"), Title: a.form.Get("title"), Text: a.form.Get("text"),
		OptIn: a.form.Get("optIn") != "", Bad: bad,
	}
}

// bad returns the validation errors by field, in the language of the page, or nil if err is no
// validation error.
func (a *acting) bad(err error) map[string]string {
	found, ok := problem.As(err)
	if !ok || found.Code != problem.Validation {
		return nil
	}
	bad := map[string]string{}
	fields, _ := found.Details["fields"].([]problem.Field)
	for _, f := range fields {
		bad[f.Field] = a.words.Text("bad." + f.Field)
		switch f.Rule {
		case "disposable":
			bad[f.Field] = a.words.Text("bad.disposable")
		case "invisible":
			bad[f.Field] = a.words.Text("bad.invisible")
		}
	}
	return bad
}
