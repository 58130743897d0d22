package mcp

import (
	"regexp"
	"strings"
	"unicode"
)

// The contract's names are camelCase, those of the tools snake_case.

// Snake writes a name of the contract as the tools have it: mrrCents as mrr_cents, and the
// header Idempotency-Key as idempotency_key.
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

// A word of more than one hump. What stands right behind a quote is a value.
var humps = regexp.MustCompile(`(^|[^\w'"])([a-z]+(?:[A-Z][a-z]*)+)\b`)

var headers = strings.NewReplacer("Idempotency-Key", Snake("Idempotency-Key"), "If-Match", Snake("If-Match"), "ETag", "etag")

// prose writes the contract's names in a text of ours as the tools have them. Other
// words stay as they are.
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

// path writes where a value stands: body.text, tagIds[2].
func path(field string) string {
	parts := strings.Split(field, ".")
	for i, part := range parts {
		parts[i] = Snake(part)
	}
	return strings.Join(parts, ".")
}
