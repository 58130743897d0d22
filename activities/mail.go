package activities

import (
	"context"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/temporal"

	"earshot/internal/mail"
	"earshot/internal/publicid"
	"earshot/internal/webhooks"
)

// Mails tells people what they should know.
type Mails struct {
	webhooks *webhooks.Service
	mailer   *mail.Mailer
	counts   *Counts
}

// NewMails makes the activity.
func NewMails(w *webhooks.Service, m *mail.Mailer, counts *Counts) *Mails {
	return &Mails{w, m, counts}
}

// MailAdminParams name a webhook that was disabled and whom to tell.
type MailAdminParams struct {
	Webhook publicid.Webhook `json:"webhook"`
	Admin   publicid.User    `json:"admin"`
	// ID is the message's, the same however often it is sent.
	ID string `json:"id"`
}

// MailResult tells whether a message was sent. None is where the deployment has no
// mail settings, and where the webhook or the admin is gone.
type MailResult struct {
	Sent bool `json:"sent"`
}

// MailAdmin tells an admin that a webhook was disabled. What will be refused again
// is an error that isn't retried.
func (m *Mails) MailAdmin(ctx context.Context, p MailAdminParams) (MailResult, error) {
	notice, err := m.webhooks.DisabledNotice(ctx, p.Webhook, p.Admin)
	if err != nil || notice == nil {
		return MailResult{}, err
	}
	err = m.mailer.Send(ctx, mail.Message{ID: p.ID, To: notice.To, Subject: notice.Subject, Text: notice.Text})
	switch {
	case errors.Is(err, mail.ErrNotConfigured):
		m.counts.email(ctx, "not_configured")
		return MailResult{}, nil
	case mail.Permanent(err):
		m.counts.email(ctx, "refused")
		return MailResult{}, temporal.NewNonRetryableApplicationError(err.Error(), "MailRefused", nil)
	case err != nil:
		m.counts.email(ctx, "failed")
		return MailResult{}, errors.Wrap(err, "tell the admin")
	}
	m.counts.email(ctx, "sent")
	return MailResult{Sent: true}, nil
}
