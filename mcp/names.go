package mcp

import (
	"regexp"
	"strings"
	"unicode"
)

// Names of the contract are in camelCase, names of the tools in snake_case.

// Snake converts a name of the contract to a name of the tools. For example, mrrCents becomes
// mrr_cents, and the header Idempotency-Key becomes idempotency_key.
func Snake(name string) string {
	var b strings.Builder
	for i, r := range strings.ReplaceAll(name, "-", "") {
		if unicode.IsUpper(r) {
			if i > 0 {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// A word in camelCase. A word right after a quote is a value and does not match.
var humps = regexp.MustCompile(`(^|[^\w'"])([a-z]+(?:[A-Z][a-z]*)+)\b`)

var headers = strings.NewReplacer("Idempotency-Key", Snake("Idempotency-Key"), "If-Match", Snake("If-Match"), "ETag", "etag")

// prose converts the contract's names in one of our texts. Other words stay the same.
func (c *contract) prose(text string) string {
	text = headers.Replace(text)
	return humps.ReplaceAllStringFunc(text, func(found string) string {
		m := humps.FindStringSubmatch(found)
		if !c.names[m[2]] {
			return found
		}
		return m[1] + Snake(m[2])
	})
}

// foreign marks a member that is spelled as in the contract, so that the API does not know it either.
const foreign = "rest:"

// given converts the path of a member that the API does not know. Its own name stays as it was given.
func given(field string) string {
	at := strings.LastIndex(field, ".") + 1
	return path(field[:at]) + strings.TrimPrefix(field[at:], foreign)
}

// path converts the path of a value, for example body.text or tagIds[2].
func path(field string) string {
	parts := strings.Split(field, ".")
	for i, part := range parts {
		parts[i] = Snake(part)
	}
	return strings.Join(parts, ".")
}
