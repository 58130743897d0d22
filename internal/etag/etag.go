// Package etag makes strong validators of answers and reads the conditions of requests (RFC 9110,
// 8.8.3 and 13.1). The API and the web pages use it.
package etag

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Of returns the tag of an answer: 128 bits of the hash of its bytes, so that two different answers
// never share a tag.
func Of(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

var (
	form = regexp.MustCompile(`(?:W/)?"[!#-~\x80-\xff]*"`)
	list = regexp.MustCompile(`^\s*(?:,*\s*` + form.String() + `(?:[\s,]*,[\s,]*` + form.String() + `)*[\s,]*)$`)
)

// Any is an asterisk in place of a list.
const Any = "*"

// Read returns the tags of an If-Match or If-None-Match header. It returns nil if the header is
// missing or malformed.
func Read(h http.Header, name string) []string {
	text := strings.TrimSpace(strings.Join(h.Values(name), ","))
	switch {
	case text == Any:
		return []string{Any}
	case list.MatchString(text):
		return form.FindAllString(text, -1)
	default:
		return nil
	}
}

// Has reports whether an If-None-Match header contains the tag. A weak tag counts too, because a
// proxy that compresses an answer makes its tag weak. A malformed header counts as none.
func Has(h http.Header, tag string) bool {
	return slices.ContainsFunc(Read(h, "If-None-Match"), func(have string) bool {
		return have == Any || strings.TrimPrefix(have, "W/") == tag
	})
}
