// Package mail sends e-mails in plain text, optionally with HTML, to one recipient each. It sends
// through a mail server, or writes to a directory on a developer's machine.
//
// Each call makes one attempt. The caller has a durable timer and asks Permanent whether a retry
// makes sense. Logs and errors contain no address, no password and no text of the server, because
// servers quote addresses.
package mail

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/mail"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/config"
)

// sendTimeout bounds a whole send, from the DNS lookup to the server's last reply. Servers that
// check a message for spam take seconds.
const sendTimeout = 30 * time.Second

// Options configure a Mailer. With neither SMTP nor Dir it sends nothing.
type Options struct {
	// SMTP is the mail server. It takes precedence over Dir.
	SMTP config.SMTP
	// From is the sender. Without an address it is earshot@localhost, which is enough for Dir.
	From mail.Address
	// Dir is the development mailbox, see config.Config.
	Dir string
	Log *slog.Logger
	// Timeout bounds a whole send; 0 means 30 s.
	Timeout time.Duration
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
}

// Message is one e-mail to one person. Recipients therefore don't see each other's addresses, and
// one refused address does not affect the others.
type Message struct {
	// ID stays the same when the message is sent again, so that a mail system can drop the
	// duplicate. Each recipient's message needs an ID of its own. It begins with a letter or digit,
	// continues with those and "._+-", and has at most 128 characters. The Message-ID contains it,
	// so it is public.
	ID string
	// To is the recipient. The name is optional.
	To mail.Address
	// Subject is one line. Control characters become spaces, and a subject of more than 200
	// characters is cut.
	Subject string
	// Text is the body in plain text.
	Text string
	// HTML is the same body in HTML; empty means none.
	HTML string
	// Unsubscribe is an http or https address that ends such e-mails when a mail program posts to
	// it (RFC 8058); empty means none.
	Unsubscribe string
}

// Mailer sends messages. It closes the connection after each message and is safe for concurrent
// use.
type Mailer struct {
	from    mail.Address
	server  *server // nil without a mail server
	mailbox mailbox // "" without a directory
	log     *slog.Logger
}

// New returns a Mailer. It makes no connection before the first Send.
func New(o Options) *Mailer {
	m := &Mailer{from: o.From, mailbox: mailbox(o.Dir), log: o.Log}
	if m.from.Address == "" {
		m.from = mail.Address{Name: "Earshot", Address: "earshot@localhost"}
	}
	if o.SMTP != (config.SMTP{}) {
		m.server = newServer(o)
	}
	return m
}

// Send makes one attempt. Without an error the server has accepted the message, but it may still
// fail to arrive. With an error the server may have accepted it too, if the connection broke before
// the reply.
//
// The error is ErrNotConfigured, which Send has already logged, or an *Error, or it wraps the error
// of ctx.
func (m *Mailer) Send(ctx context.Context, message Message) error {
	log := m.log.With("messageId", message.ID)
	if m.server == nil && m.mailbox == "" {
		log.Warn("e-mail not sent: no mail server is configured; set EARSHOT_SMTP_URL and EARSHOT_MAIL_FROM")
		return ErrNotConfigured
	}
	l, err := compose(m.from, message)
	if err != nil {
		return err
	}
	if m.server != nil {
		if err := m.server.send(ctx, l); err != nil {
			return err
		}
		log.Info("e-mail sent")
		return nil
	}
	file, err := m.mailbox.write(l)
	if err != nil {
		// The error contains only paths and no part of the message. It is logged here, because
		// operators look in the log and not in Temporal.
		log.Error("e-mail not written into EARSHOT_MAIL_DIR", "error", err)
		return &Error{Reason: MailboxFailed}
	}
	log.Info("e-mail written, not sent", "file", file)
	return nil
}

// ErrNotConfigured means that no way to send e-mail is configured.
var ErrNotConfigured = errors.New("send e-mail: no mail server is configured")
