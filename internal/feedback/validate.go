package feedback

import (
	"encoding/json"
	"net/mail"
	"regexp"
	"strings"
	"unicode/utf8"

	"earshot/internal/problem"
)

// The limits of the specification and of docs/decisions.md that several nouns
// share. Lengths count characters, as JSON Schema does, not bytes.
const (
	maxTitle    = 200
	maxPostSlug = 80
	maxBodyText = 50_000
	// Bytes of a rich-text document: it has no other limit.
	maxBodyJSON = 256 << 10
)

var slugPattern = regexp.MustCompile(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)

// text checks a text's length, and that Postgres can hold it.
func text(bad *problem.Fields, field, value string, low, high int) {
	n := utf8.RuneCountInString(value)
	switch {
	case n < low:
		bad.Add(field, "minLength", "must have at least %d characters", low)
	case n > high:
		bad.Add(field, "maxLength", "must have at most %d characters, not %d", high, n)
	}
	if !utf8.ValidString(value) {
		bad.Add(field, "encoding", "must be UTF-8")
	}
	if strings.ContainsRune(value, 0) {
		bad.Add(field, "pattern", "must not contain the NUL character")
	}
}

func slugText(bad *problem.Fields, value string, high int) {
	text(bad, "slug", value, 1, high)
	if value != "" && !slugPattern.MatchString(value) {
		bad.Add("slug", "pattern", "must be lower-case letters and digits in groups joined by single hyphens")
	}
}

// maxEmail is the specification's.
const maxEmail = 320

// email checks an address that is trimmed and lower-cased already.
func email(bad *problem.Fields, field, value string) {
	text(bad, field, value, 1, maxEmail)
	// ParseAddress also takes "Name <address>"; only the bare address counts.
	if a, err := mail.ParseAddress(value); err != nil || a.Address != value {
		bad.Add(field, "format", "must be an e-mail address")
	}
}

// Body is a rich text: the document of any shape and its plain form.
type Body struct {
	JSON json.RawMessage
	Text string
}

// check validates a body whose text has at least low characters.
func (b Body) check(bad *problem.Fields, low int) {
	text(bad, "body.text", b.Text, low, maxBodyText)
	if len(b.JSON) > maxBodyJSON {
		bad.Add("body.json", "maxBytes", "must have at most %d bytes, not %d", maxBodyJSON, len(b.JSON))
	}
}

// document is the JSON to store: null and nothing are the same.
func (b Body) document() json.RawMessage {
	if string(b.JSON) == "null" {
		return nil
	}
	return b.JSON
}
