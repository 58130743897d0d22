package outside

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-faster/errors"
)

// Kind is a kind of interaction.
type Kind string

// The kinds.
const (
	Post    Kind = "post"
	Vote    Kind = "vote"
	Comment Kind = "comment"
)

// Interaction is a visitor's action on a public board, and its outcome as the visitor sees it.
type Interaction struct {
	Kind Kind
	// At is the path of the form.
	At string
	// Words are the title or the text, unique to this interaction. A vote has none.
	Words string
	Name  string
	Email string
	OptIn bool

	// Sent is how often the form was sent. Accepted means that the page asked the visitor to look
	// into the mailbox.
	Sent     int
	Accepted bool
	// Unsure means that a press got no answer, and Confirmed that the interaction counts.
	Unsure, Confirmed bool
}

// mailPatience is longer than the sweep takes to mail the link of an accepted form: it runs every
// minute.
const mailPatience = 75 * time.Second

// Visitor is a visitor of an organization's public boards.
type Visitor struct {
	site    Site
	mailbox *Mailbox
	browser *browser
}

// Visitor returns visitor number n of the site.
func (s Site) Visitor(n int, m *Mailbox) *Visitor { return &Visitor{s, m, s.browser(n)} }

// Ask fills in the form, as slowly as a person, and sends it until the page asks the visitor to
// look into the mailbox.
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
	var unanswered time.Time
	return insist(ctx, func(ctx context.Context) error {
		// An unanswered form may have been accepted. Each form takes a part of the address's small
		// budget of links, so a person waits for the e-mail before sending it again.
		if found, err := v.mailbox.hasLink(w); w.Sent > 0 && (err != nil || found) {
			w.Accepted = found
			return err
		}
		if time.Since(unanswered) < mailPatience {
			return errAway
		}
		w.Sent++
		got, err := v.browser.request(ctx, http.MethodPost, w.At, fields)
		if errors.Is(err, errAway) && !errors.Is(err, errRefused) {
			unanswered = time.Now()
		}
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

// Press presses the button behind a link until the outcome is known.
func (v *Visitor) Press(ctx context.Context, w *Interaction, link string) error {
	status, err := v.press(ctx, w, link)
	if err != nil {
		return err
	}
	// An unanswered press may have counted, and then the link has no effect any more.
	if status == http.StatusSeeOther || status == http.StatusGone && w.Unsure {
		w.Confirmed = true
		return nil
	}
	return errors.Errorf("the unused link of a %s was answered with %d", w.Kind, status)
}

// PressAgain presses the button of a used link, which must have no effect.
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
