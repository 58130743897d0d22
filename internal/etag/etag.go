// Package etag has the strong validators of answers, and the conditions of requests by them
// (RFC 9110, 8.8.3 and 13.1), for the API and the web pages.
package etag

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Of is the tag of an answer: 128 bits of the hash of its bytes, so that two different answers
// never have the same one.
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

// Read returns the tags of a header, If-Match or If-None-Match, or nil where it isn't there or
// malformed.
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

// Has reports whether an If-None-Match names the tag, also as a weak one: a proxy that compresses
// an answer makes its tag weak. One that is malformed is as good as none.
func Has(h http.Header, tag string) bool {
	return slices.ContainsFunc(Read(h, "If-None-Match"), func(have string) bool {
		return have == Any || strings.TrimPrefix(have, "W/") == tag
	})
}
