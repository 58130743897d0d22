package problem

// Checks for fields that several resources share. Lengths are in characters, as in JSON Schema, and
// not in bytes.

import (
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// standardOverlap is one day, the time to deploy a new key or secret everywhere.
const standardOverlap = 24 * 60 * 60

// Overlap returns the time for which a replaced key or secret stays valid: one day by default,
// otherwise the given seconds, and at most most.
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

// Moment refuses times outside of the years 1 to 9999, because years in JSON timestamps have four
// digits.
func (f *Fields) Moment(field string, at *time.Time) {
	if at != nil && (at.UTC().Year() < 1 || at.UTC().Year() > 9999) {
		f.Add(field, "format", "must lie between the years 1 and 9999")
	}
}

// OverPlan is the problem of a resource beyond the limit of the organization's plan.
func OverPlan(resource string, limit, current int) error {
	return New(PlanLimit, "The organization's plan allows no further "+resource+".").
		With("resource", resource).With("limit", limit).With("current", current)
}

// Items checks the number of items in a filter.
func (f *Fields) Items(field string, items []string, high int) {
	if len(items) == 0 {
		f.Add(field, "minItems", "must have at least 1 item")
	}
	if len(items) > high {
		f.Add(field, "maxItems", "must have at most %d items, not %d", high, len(items))
	}
}

// Item names one element of an array member, for example tagIds[3].
func Item(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// Text checks the length of a text, and that Postgres can store it.
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

// Shown is Text for a name or a title. Invisible characters, and those that change the direction of
// a text, could disguise it as another one.
func (f *Fields) Shown(field, value string, low, high int) {
	f.Text(field, value, low, high)
	if r, found := invisible(value); found {
		f.Add(field, "invisible", "must not contain the invisible character U+%04X", r)
	}
}

// Line is Shown for a text that is also shown on a terminal or in an e-mail. Control characters could
// disguise such a text.
func (f *Fields) Line(field, value string, low, high int) {
	f.Shown(field, value, low, high)
	if strings.ContainsFunc(value, func(r rune) bool { return r != 0 && unicode.IsControl(r) }) {
		f.Add(field, "pattern", "must not contain control characters")
	}
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// invisible returns the first character of a text that has no place in a name or title. Joiners after
// letters of other scripts than Latin and after emoji are part of words and of emoji, and so is one
// variation selector after a character.
func invisible(text string) (found rune, ok bool) {
	var before rune
	for _, r := range text {
		bad := false
		switch {
		case r == zeroWidthNonJoiner, r == zeroWidthJoiner:
			bad = before <= unicode.MaxASCII || unicode.Is(unicode.Latin, before) || before == zeroWidthNonJoiner || before == zeroWidthJoiner
		case unicode.Is(unicode.Variation_Selector, r):
			bad = before == 0 || unicode.Is(unicode.Latin, before) || unicode.Is(unicode.Variation_Selector, before)
		default:
			bad = unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point) &&
				!unicode.Is(unicode.Prepended_Concatenation_Mark, r) // visible, for example the Arabic sign of a year
		}
		if bad {
			return r, true
		}
		before = r
	}
	return 0, false
}

// MaxEmail is the specification's maximum length of an e-mail address.
const MaxEmail = 320

// Email checks an address in the form in which it is stored. A contact's address is trimmed and
// lower-cased before.
func (f *Fields) Email(field, value string) {
	f.Text(field, value, 1, MaxEmail)
	// ParseAddress also accepts "Name <address>". Only the bare address is valid here.
	if a, err := mail.ParseAddress(value); err != nil || a.Address != value {
		f.Add(field, "format", "must be an e-mail address")
	}
}
