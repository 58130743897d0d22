package activities

import (
	"context"

	"github.com/go-faster/errors"
	"go.temporal.io/sdk/temporal"

	"earshot/internal/mail"
	"earshot/internal/publicid"
	"earshot/internal/webhooks"
)

// MailAdminName is the wire name of the activity.
const MailAdminName = "mail_admin"

// Mails sends e-mails to admins.
type Mails struct {
	webhooks *webhooks.Service
	mailer   *mail.Mailer
	counts   *Counts
}

// NewMails makes the activity.
func NewMails(w *webhooks.Service, m *mail.Mailer, counts *Counts) *Mails {
	return &Mails{w, m, counts}
}

// MailAdminParams names a disabled webhook and one admin to notify.
type MailAdminParams struct {
	Webhook publicid.Webhook `json:"webhook"`
	Admin   publicid.User    `json:"admin"`
	// ID is the message's id, the same for each try.
	ID string `json:"id"`
}

// MailResult reports if a message was sent. No message is sent if the deployment has no mail
// settings, or if the webhook or the admin no longer exists.
type MailResult struct {
	Sent bool `json:"sent"`
}

// MailAdmin mails an admin that a webhook was disabled. A permanent rejection is an error that
// isn't retried.
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
