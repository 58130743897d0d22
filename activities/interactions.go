package activities

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/failpoint"
	"earshot/internal/mail"
	"earshot/internal/publicactions"
	"earshot/internal/publicid"
)

// The wire names of the activities.
const (
	MailLinkName          = "mail_link"
	LookAtInteractionName = "look_at_interaction"
)

// Interactions mails confirmation links to end-users.
type Interactions struct {
	actions *publicactions.Service
	mailer  *mail.Mailer
	counts  *Counts
}

// NewInteractions makes the activities.
func NewInteractions(i *publicactions.Service, m *mail.Mailer, counts *Counts) *Interactions {
	return &Interactions{i, m, counts}
}

// InteractionParams names the interaction.
type InteractionParams struct {
	Interaction publicid.Interaction `json:"interaction"`
}

// InteractionResult holds the time until which the interaction can be confirmed. It is nil if there
// is nothing left to confirm.
type InteractionResult struct {
	Until *time.Time `json:"until"`
}

// MailLink mails the link, unless it was already mailed. If the e-mail is rejected for good, or the
// deployment can't send e-mails, it removes the interaction, because the link can never arrive.
func (i *Interactions) MailLink(ctx context.Context, p InteractionParams) error {
	letter, err := i.actions.Letter(ctx, p.Interaction)
	if err != nil || letter == nil {
		return err
	}
	failpoint.Hit(failpoint.BeforeLink)
	// The id is the same for each try, so that a lost answer only leads to a duplicate e-mail.
	err = i.mailer.Send(ctx, mail.Message{ID: p.Interaction.String(), To: letter.To, Subject: letter.Subject, Text: letter.Text})
	switch {
	case errors.Is(err, mail.ErrNotConfigured):
		i.counts.email(ctx, "not_configured")
		return i.actions.Remove(ctx, p.Interaction)
	case mail.Permanent(err):
		i.counts.email(ctx, "refused")
		return i.actions.Remove(ctx, p.Interaction)
	case err != nil:
		i.counts.email(ctx, "failed")
		return errors.Wrap(err, "mail the link")
	}
	failpoint.Hit(failpoint.AfterLink)
	i.counts.email(ctx, "sent")
	return i.actions.Mailed(ctx, p.Interaction)
}

// Look removes the interaction if its time is up.
func (i *Interactions) Look(ctx context.Context, p InteractionParams) (InteractionResult, error) {
	until, err := i.actions.Look(ctx, p.Interaction)
	return InteractionResult{Until: until}, err
}
