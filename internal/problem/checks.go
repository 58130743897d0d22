package problem

// Checks that the fields of several nouns share. Lengths count characters, as JSON
// Schema does, not bytes.

import (
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// standardOverlap is a day to carry a new key or secret everywhere.
const standardOverlap = 24 * 60 * 60

// Overlap is how long what is being replaced still counts: a day where nothing is given, else
// so many seconds, and most at most.
func (f *Fields) Overlap(seconds *int, most int) time.Duration {
	given := standardOverlap
	if seconds != nil {
		given = *seconds
	}
	if given < 0 {
		f.Add("overlapSeconds", "minimum", "must be at least 0")
	}
	if given > most {
		f.Add("overlapSeconds", "maximum", "must be at most %d", most)
	}
	return time.Duration(given) * time.Second
}

// Moment refuses what has no place in a calendar of four-digit years, which is
// what a timestamp in JSON is written in.
func (f *Fields) Moment(field string, at *time.Time) {
	if at != nil && (at.UTC().Year() < 1 || at.UTC().Year() > 9999) {
		f.Add(field, "format", "must lie between the years 1 and 9999")
	}
}

// OverPlan is the problem of one more than the organization's plan allows.
func OverPlan(resource string, limit, current int) error {
	return New(PlanLimit, "The organization's plan allows no further "+resource+".").
		With("resource", resource).With("limit", limit).With("current", current)
}

// Items checks the number of items of a filter.
func (f *Fields) Items(field string, items []string, high int) {
	if len(items) == 0 {
		f.Add(field, "minItems", "must have at least 1 item")
	}
	if len(items) > high {
		f.Add(field, "maxItems", "must have at most %d items, not %d", high, len(items))
	}
}

// Item names one element of an array member: tagIds[3].
func Item(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// Text checks a text's length, and that Postgres can hold it.
func (f *Fields) Text(field, value string, low, high int) {
	n := utf8.RuneCountInString(value)
	switch {
	case n < low:
		f.Add(field, "minLength", "must have at least %d characters", low)
	case n > high:
		f.Add(field, "maxLength", "must have at most %d characters, not %d", high, n)
	}
	if !utf8.ValidString(value) {
		f.Add(field, "encoding", "must be UTF-8")
	}
	if strings.ContainsRune(value, 0) {
		f.Add(field, "pattern", "must not contain the NUL character")
	}
}

// Line is Text that is shown in one line, on a terminal or in an e-mail, where a control
// character could pretend to be something else.
func (f *Fields) Line(field, value string, low, high int) {
	f.Text(field, value, low, high)
	if strings.ContainsFunc(value, func(r rune) bool { return r != 0 && unicode.IsControl(r) }) {
		f.Add(field, "pattern", "must not contain control characters")
	}
}

// MaxEmail is the specification's.
const MaxEmail = 320

// Email checks an address as it is to be kept: a contact's is trimmed and lower-cased
// before.
func (f *Fields) Email(field, value string) {
	f.Text(field, value, 1, MaxEmail)
	// ParseAddress also takes "Name <address>"; only the bare address counts.
	if a, err := mail.ParseAddress(value); err != nil || a.Address != value {
		f.Add(field, "format", "must be an e-mail address")
	}
}
