package mail

import (
	"crypto/tls"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/go-faster/errors"
)

// Reason says at which point a message got stuck.
type Reason string

// The reasons.
const (
	// BadMessage: the ID or the recipient's address isn't one. Permanent.
	BadMessage Reason = "the id or the address is not valid"
	// ConnectionFailed: no connection, no greeting, or it broke off.
	ConnectionFailed Reason = "the connection failed"
	// Timeout: it took longer than a send may.
	Timeout Reason = "the time ran out"
	// NoSTARTTLS: the server doesn't offer what the settings demand.
	NoSTARTTLS Reason = "the server offers no STARTTLS"
	// CertificateRefused: it isn't trusted, or not that of the host.
	CertificateRefused Reason = "the server's certificate is not valid"
	// LoginRefused: wrong user or password, or no way that both sides know.
	LoginRefused Reason = "the login was refused"
	// SenderRefused, RecipientRefused and MessageRefused are the server's
	// judgement of this message. Permanent with a code of 500 and above.
	SenderRefused    Reason = "the sender was refused"
	RecipientRefused Reason = "the recipient was refused"
	MessageRefused   Reason = "the message was refused"
	// MailboxFailed: the file couldn't be written.
	MailboxFailed Reason = "the file was not written"
)

// Error is why a message wasn't sent. Its text holds no address and nothing of
// what the server said.
type Error struct {
	Reason Reason
	// Code is the server's, 400 and above; 0 when it didn't come to an answer.
	Code int
	// NoMailbox is that the server says that the recipient has none there, or not any more. A refusal
	// alone doesn't say so: it may be of who sends.
	NoMailbox bool
}

// Error says the reason and the code.
func (e *Error) Error() string {
	text := "send e-mail: " + string(e.Reason)
	if e.Code != 0 {
		text += " (SMTP " + strconv.Itoa(e.Code) + ")"
	}
	return text
}

// permanent leaves out what is wrong with the settings or the server: an
// operator mends that, and then the message can go.
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

// Judged reports whether the server has refused this message and would take others: because of the
// recipient, or of what it says.
func Judged(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Reason == RecipientRefused || e.Reason == MessageRefused) && e.Code != closing
}

// RefusesSender reports whether the server takes nothing from us as we are set up. It isn't the
// message's fault, so an operator can mend it.
func RefusesSender(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == SenderRefused
}

// closing is the answer of a server that is about to close the connection, whatever it was asked for.
const closing = 421

// noMailbox are the enhanced status codes by which a server says that there is no such mailbox (RFC
// 3463, 3.2 and 3.3; RFC 7505).
var noMailbox = []string{"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"}

// UnknownRecipient reports whether the server says that the recipient's mailbox isn't there.
func UnknownRecipient(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.NoMailbox
}

// Permanent reports whether sending the same message again is of no use: it is
// malformed, the server refused it for good (5xx), or nothing says how e-mails
// are sent. Everything else may pass, though it can take until somebody mends
// the settings, so bound the attempts in any case.
func Permanent(err error) bool {
	var e *Error
	return errors.Is(err, ErrNotConfigured) || (errors.As(err, &e) && e.permanent())
}

// failed is the Error of a step of the conversation. An answer is refused for
// the step's reason; what is no answer has reasons of its own.
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
