// Package mail sends e-mails of plain text, and with HTML beside it, one recipient each: through a mail
// server, or into a directory on a developer's machine.
//
// It makes one attempt a call and repeats nothing: the caller, who has a durable
// timer, asks Permanent whether another one makes sense. It refuses to put an
// address, a password or what a server said into a log or an error: servers
// quote addresses.
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

// sendTimeout bounds a whole send, from looking the name up to the server's
// last word. Servers that look into a message for spam take seconds for that.
const sendTimeout = 30 * time.Second

// Options configure a Mailer. With neither SMTP nor Dir it sends nothing.
type Options struct {
	// SMTP is the mail server. It goes before Dir.
	SMTP config.SMTP
	// From is the sender; without an address it is earshot@localhost, which
	// does for Dir.
	From mail.Address
	// Dir is the development mailbox, see config.Config.
	Dir string
	Log *slog.Logger
	// Timeout is the time of a whole send; 0 is 30 s.
	Timeout time.Duration
	// RootCAs are the authorities to trust; nil is the system's.
	RootCAs *x509.CertPool
}

// Message is one e-mail to one person, so that nobody sees another's address
// and one address that is refused keeps nothing from the others.
type Message struct {
	// ID stays the same however often the message is sent, so that a mail
	// system may drop the repetition; each recipient's message needs its own.
	// It begins with a letter or digit, goes on with those and "._+-", and has
	// at most 128 characters. The Message-ID is made of it, so it is public.
	ID string
	// To is the recipient, the name optional.
	To mail.Address
	// Subject is one line: control characters become spaces, and what is
	// longer than 200 characters is cut.
	Subject string
	// Text is the body.
	Text string
	// HTML is the same for programs that show it; empty is none.
	HTML string
	// Unsubscribe is the address, of http or https, that ends such e-mails when it is posted to
	// (RFC 8058); empty is none.
	Unsubscribe string
}

// Mailer sends messages. It holds no connection between them and is safe for
// concurrent use.
type Mailer struct {
	from    mail.Address
	server  *server // nil without a mail server
	mailbox mailbox // "" without a directory
	log     *slog.Logger
}

// New returns a Mailer. It connects to nothing before the first Send.
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

// Send makes one attempt. Without an error the server has taken the message
// over, which doesn't mean that it arrives. With an error it may have been taken
// all the same, when the connection broke before the answer.
//
// The error is ErrNotConfigured, which the log has told already, an *Error, or
// wraps that of ctx.
func (m *Mailer) Send(ctx context.Context, message Message) error {
	log := m.log.With("messageId", message.ID)
	if m.server == nil && m.mailbox == "" {
		log.Warn("e-mail not sent: nothing says how; set EARSHOT_SMTP_URL and EARSHOT_MAIL_FROM")
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
		// A file's error names paths and nothing of the message, but an operator
		// looks for it in the log and not in Temporal.
		log.Error("e-mail not written into EARSHOT_MAIL_DIR", "error", err)
		return &Error{Reason: MailboxFailed}
	}
	log.Info("e-mail written, not sent", "file", file)
	return nil
}

// ErrNotConfigured says that no setting names a way for e-mails.
var ErrNotConfigured = errors.New("send e-mail: nothing says how")
