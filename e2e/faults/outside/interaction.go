package outside

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-faster/errors"
)

// Kind is what a visitor wants.
type Kind string

// The kinds.
const (
	Post    Kind = "post"
	Vote    Kind = "vote"
	Comment Kind = "comment"
)

// Interaction is what a visitor wants on a public board, and what came of it as the visitor knows it.
type Interaction struct {
	Kind Kind
	// At is the path of its form.
	At string
	// Words are the title or the text, of this interaction alone. A vote has none.
	Words string
	Name  string
	Email string
	OptIn bool

	// Sent is how often the form was sent, and Accepted that the page said to look into the mailbox.
	Sent     int
	Accepted bool
	// Unsure is that a press got no answer, and Confirmed that it counts.
	Unsure, Confirmed bool
}

// Visitor is somebody before an organization's public boards.
type Visitor struct {
	site    Site
	mailbox *Mailbox
	browser *browser
}

// Visitor is number n of a site's.
func (s Site) Visitor(n int, m *Mailbox) *Visitor { return &Visitor{s, m, s.browser(n)} }

// Ask fills the form in, as slowly as a person, and sends it until the page says to look into the
// mailbox.
func (v *Visitor) Ask(ctx context.Context, w *Interaction) error {
	page, err := v.browser.open(ctx, w.At)
	if err != nil {
		return err
	}
	fields, err := page.form()
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"name": w.Name, "email": w.Email, "title": w.Words, "text": w.Words} {
		if fields.Has(name) {
			fields.Set(name, value)
		}
	}
	if err := pause(ctx, reading); err != nil {
		return err
	}
	return insist(ctx, func(ctx context.Context) error {
		w.Sent++
		got, err := v.browser.request(ctx, http.MethodPost, w.At, fields)
		if err != nil {
			return err
		}
		if got.status != http.StatusSeeOther || !strings.HasSuffix(got.header.Get("Location"), "/-/sent") {
			return errors.Errorf("the form at %s was answered with %d %s: %s", w.At, got.status, got.header.Get("Location"), got.body)
		}
		w.Accepted = true
		return nil
	})
}

// Link waits for the e-mail and returns its link.
func (v *Visitor) Link(ctx context.Context, w *Interaction) (string, error) {
	letter, err := v.mailbox.await(ctx, w.Email)
	return letter.Link, err
}

// Press presses the button behind a link until it is known what came of it.
func (v *Visitor) Press(ctx context.Context, w *Interaction, link string) error {
	status, err := v.press(ctx, w, link)
	if err != nil {
		return err
	}
	// One that got no answer may have counted, and then the link does nothing any more.
	if status == http.StatusSeeOther || status == http.StatusGone && w.Unsure {
		w.Confirmed = true
		return nil
	}
	return errors.Errorf("the link of a %s that nobody had used was answered with %d", w.Kind, status)
}

// PressAgain presses the button of a link that was used, which must do nothing.
func (v *Visitor) PressAgain(ctx context.Context, w *Interaction, link string) error {
	status, err := v.press(ctx, w, link)
	if err != nil {
		return err
	}
	if status != http.StatusGone {
		return errors.Errorf("the link of a %s that was used was answered with %d", w.Kind, status)
	}
	return nil
}

func (v *Visitor) press(ctx context.Context, w *Interaction, link string) (status int, err error) {
	at, err := url.Parse(link)
	if err != nil {
		return 0, errors.Wrap(err, "read a link")
	}
	form := url.Values{"token": {at.Query().Get("token")}}
	if w.OptIn {
		form.Set("optIn", "1")
	}
	err = insist(ctx, func(ctx context.Context) error {
		got, err := v.browser.request(ctx, http.MethodPost, at.Path, form)
		if errors.Is(err, errAway) {
			w.Unsure = true
		}
		status = got.status
		return err
	})
	return status, err
}
