package mail

import (
	"crypto/tls"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/go-faster/errors"
)

// Reason is the cause of a failed send.
type Reason string

// The reasons.
const (
	// BadMessage: the ID, the recipient's address or the unsubscribe link is not valid. Permanent.
	BadMessage Reason = "the id or the address is not valid"
	// ConnectionFailed: no connection, no greeting, or the connection broke.
	ConnectionFailed Reason = "the connection failed"
	// Timeout: the send took longer than it may.
	Timeout Reason = "the time ran out"
	// NoSTARTTLS: the settings require STARTTLS, but the server does not offer it.
	NoSTARTTLS Reason = "the server offers no STARTTLS"
	// CertificateRefused: the certificate is not trusted, or belongs to another host.
	CertificateRefused Reason = "the server's certificate is not valid"
	// LoginRefused: a wrong user or password, or no common login method.
	LoginRefused Reason = "the login was refused"
	// SenderRefused, RecipientRefused and MessageRefused: the server refused the sender, the
	// recipient or the content. Permanent with a code of 500 and above.
	SenderRefused    Reason = "the sender was refused"
	RecipientRefused Reason = "the recipient was refused"
	MessageRefused   Reason = "the message was refused"
	// MailboxFailed: the file could not be written.
	MailboxFailed Reason = "the file was not written"
)

// Error is the reason why a message was not sent. Its text contains no address and no text of the
// server.
type Error struct {
	Reason Reason
	// Code is the server's reply code, 400 and above; 0 without a reply.
	Code int
	// NoMailbox is true if the server reports that the recipient's mailbox does not exist. A
	// refusal alone is no proof, because the sender may be its cause.
	NoMailbox bool
}

// Error returns the reason and the code.
func (e *Error) Error() string {
	text := "send e-mail: " + string(e.Reason)
	if e.Code != 0 {
		text += " (SMTP " + strconv.Itoa(e.Code) + ")"
	}
	return text
}

// permanent excludes faults of the settings and of the server. An operator fixes those, and then
// the message can be sent.
func (e *Error) permanent() bool {
	switch e.Reason {
	case BadMessage:
		return true
	case SenderRefused, RecipientRefused, MessageRefused:
		return e.Code >= 500
	default:
		return false
	}
}

// Refused reports whether the server refused this message but would accept others. The cause is the
// recipient or the content.
func Refused(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Reason == RecipientRefused || e.Reason == MessageRefused) && e.Code != closing
}

// RefusesSender reports whether the server refuses our sender. The cause is the configuration, not
// the message, so an operator can fix it.
func RefusesSender(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == SenderRefused
}

// closing is the reply of a server that is about to close the connection. It may follow any
// command.
const closing = 421

// noMailbox are the enhanced status codes for a mailbox that does not exist (RFC 3463, 3.2 and 3.3;
// RFC 7505).
var noMailbox = []string{"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"}

// UnknownRecipient reports whether the server says that the recipient's mailbox does not exist.
func UnknownRecipient(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.NoMailbox
}

// Permanent reports whether a retry is useless. The message is malformed, the server refused it
// permanently (5xx), or no way to send e-mail is configured. Any other error may pass, but possibly
// only after an operator has fixed the settings. Callers must therefore bound their attempts.
func Permanent(err error) bool {
	var e *Error
	return errors.Is(err, ErrNotConfigured) || (errors.As(err, &e) && e.permanent())
}

// failed converts the error of a step to an *Error. A refusal by the server gets the step's reason.
// Other errors have reasons of their own.
func failed(step Reason, err error) *Error {
	var (
		own         *Error
		answer      *textproto.Error
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &certificate):
		return &Error{Reason: CertificateRefused}
	case errors.As(err, &answer):
		status, _, _ := strings.Cut(answer.Msg, " ")
		return &Error{Reason: step, Code: answer.Code, NoMailbox: step == RecipientRefused && slices.Contains(noMailbox, status)}
	default:
		return &Error{Reason: ConnectionFailed}
	}
}
