package activities

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/failpoint"
	"earshot/internal/interactions"
	"earshot/internal/mail"
	"earshot/internal/publicid"
)

// Interactions has end-users confirm what they want.
type Interactions struct {
	interactions *interactions.Service
	mailer       *mail.Mailer
	counts       *Counts
}

// NewInteractions makes the activities.
func NewInteractions(i *interactions.Service, m *mail.Mailer, counts *Counts) *Interactions {
	return &Interactions{i, m, counts}
}

// InteractionParams name the interaction.
type InteractionParams struct {
	Interaction publicid.Interaction `json:"interaction"`
}

// InteractionResult says until when it may be confirmed; nil is that there is nothing to confirm
// any more.
type InteractionResult struct {
	Until *time.Time `json:"until"`
}

// MailLink mails the link, unless it was mailed already. Where that can't be done, nobody will
// ever have the link, so the interaction is removed.
func (i *Interactions) MailLink(ctx context.Context, p InteractionParams) error {
	letter, err := i.interactions.Letter(ctx, p.Interaction)
	if err != nil || letter == nil {
		return err
	}
	failpoint.Hit(failpoint.BeforeLink)
	// The same id however often it is sent: an answer that got lost makes it go twice, and nothing else.
	err = i.mailer.Send(ctx, mail.Message{ID: p.Interaction.String(), To: letter.To, Subject: letter.Subject, Text: letter.Text})
	switch {
	case errors.Is(err, mail.ErrNotConfigured):
		i.counts.email(ctx, "not_configured")
		return i.interactions.Remove(ctx, p.Interaction)
	case mail.Permanent(err):
		i.counts.email(ctx, "refused")
		return i.interactions.Remove(ctx, p.Interaction)
	case err != nil:
		i.counts.email(ctx, "failed")
		return errors.Wrap(err, "mail the link")
	}
	failpoint.Hit(failpoint.AfterLink)
	i.counts.email(ctx, "sent")
	return i.interactions.Mailed(ctx, p.Interaction)
}

// Look removes the interaction if its time is up.
func (i *Interactions) Look(ctx context.Context, p InteractionParams) (InteractionResult, error) {
	until, err := i.interactions.Look(ctx, p.Interaction)
	return InteractionResult{Until: until}, err
}
