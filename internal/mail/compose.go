package mail

import (
	"bytes"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
)

// maxLine bounds the subject and the name, in characters. No program shows longer ones, and a
// header line has at most 998 bytes (RFC 5322, 2.1.1).
const maxLine = 200

// validID matches IDs that are safe in a Message-ID and as a file name.
var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)

// letter is a composed message.
type letter struct {
	id       string
	from, to string // the envelope's addresses
	text     []byte // headers and body, lines ended by CR LF
}

// compose renders a message. Its error is a permanent *Error.
func compose(from mail.Address, m Message) (letter, error) {
	if !validID.MatchString(m.ID) || !validAddress(m.To.Address) || m.Unsubscribe != "" && !validLink(m.Unsubscribe) {
		return letter{}, &Error{Reason: BadMessage}
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&mail.Address{Name: oneLine(from.Name), Address: from.Address})
	msg.ToMailAddress(&mail.Address{Name: oneLine(m.To.Name), Address: m.To.Address})
	msg.SetMessageIDWithValue(m.ID + from.Address[strings.LastIndex(from.Address, "@"):])
	msg.SetDateWithValue(time.Now().UTC())
	// Prevents automatic replies, such as holiday notices (RFC 3834).
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.Subject(oneLine(m.Subject))
	if m.Unsubscribe != "" {
		msg.SetGenHeaderPreformatted("List-Unsubscribe", "<"+m.Unsubscribe+">")
		msg.SetGenHeader("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	var text bytes.Buffer
	if _, err := msg.WriteTo(&text); err != nil {
		return letter{}, &Error{Reason: BadMessage} // never happens: a buffer accepts every write
	}
	return letter{id: m.ID, from: from.Address, to: m.To.Address, text: text.Bytes()}, nil
}

// validAddress reports whether the text is an address and nothing else: no
// name, no comment, no quotes.
func validAddress(address string) bool {
	parsed, err := mail.ParseAddress(address)
	return err == nil && parsed.Address == address
}

// maxLink leaves room for the rest of a header line.
const maxLink = 900

// linkPattern excludes the characters that end the brackets around a link, or the header line.
var linkPattern = regexp.MustCompile(`^[A-Za-z0-9:/?#@!$&'()*+,;=._~%\[\]-]+$`)

// validLink reports whether the text is a web address that fits into a header unchanged.
func validLink(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(text) <= maxLink && linkPattern.MatchString(text)
}

// oneLine makes a header line from any text. It replaces control characters, which include CR and
// LF, by spaces, removes characters that change the direction, and cuts a long text.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	characters := []rune(strings.Join(strings.Fields(text), " "))
	if len(characters) > maxLine {
		characters = append(characters[:maxLine-1], '…')
	}
	return string(characters)
}
