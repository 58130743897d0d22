package mcp

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"

	"earshot/internal/jsonscan"
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

// naming holds the contract's names in a value. All other names are the caller's own, such as the
// keys inside metadata, and stay the same. A nil naming has no names.
type naming struct {
	members map[string]member // by the contract's name
	ours    map[string]member // by the tools' name
	items   *naming
}

// member is the name to write, as JSON, and the names in its value.
type member struct {
	quoted []byte
	names  *naming
}

func memberOf(name string, names *naming) member {
	quoted, _ := json.Marshal(name) // never fails: a string
	return member{quoted, names}
}

// namingOf returns the names in the values that a schema describes.
func namingOf(of *openapi3.SchemaRef) *naming {
	s := &naming{}
	for name, p := range of.Value.Properties {
		s.add(name, namingOf(p))
	}
	// Items without a schema are the caller's own.
	if of.Value.Items != nil && !of.Value.Items.Value.IsEmpty() {
		s.items = namingOf(of.Value.Items)
	}
	for _, part := range slices.Concat(of.Value.AllOf, of.Value.OneOf) {
		for name, m := range namingOf(part).members {
			s.add(name, m.names)
		}
	}
	return s
}

// add adds a name of the contract.
func (s *naming) add(name string, of *naming) {
	if s.members == nil {
		s.members, s.ours = map[string]member{}, map[string]member{}
	}
	s.members[name] = memberOf(Snake(name), of)
	s.ours[Snake(name)] = memberOf(name, of)
}

// outward converts the contract's names to the tools' names.
func (s *naming) outward(raw []byte) []byte { return s.rename(bytes.TrimSpace(raw), true) }

// inward makes a body from a tool's arguments, in the contract's names. It leaves out arguments that
// do not belong to the body. A member further inside that the tools do not know stays, so that the API
// validates it, even if it has the contract's spelling.
func (s *naming) inward(raw []byte) []byte { return s.object(bytes.TrimSpace(raw), false, false) }

// rename converts the names that s holds, in valid JSON. The rest is copied byte for byte,
// which preserves numbers and the order of keys.
func (s *naming) rename(raw []byte, out bool) []byte {
	switch {
	case s == nil || len(raw) == 0:
		return raw
	case raw[0] == '{' && s.members != nil:
		return s.object(raw, out, true)
	case raw[0] == '[' && s.items != nil:
		return s.list(raw, out)
	default:
		return raw
	}
}

// object converts an object. Unknown members are left out unless keep is true.
func (s *naming) object(raw []byte, out, keep bool) []byte {
	names, others := s.ours, s.members
	if out {
		names, others = s.members, nil
	}
	all := append(make([]byte, 0, len(raw)+len(raw)/8), '{') // the tools' names are longer
	jsonscan.Members(raw, func(name string, value []byte) {
		of, known := names[name]
		_, spelledAsInContract := others[name]
		switch {
		case known:
		case !keep:
			return
		case spelledAsInContract:
			of = memberOf(foreign+name, nil)
		default:
			of = memberOf(name, nil)
		}
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(append(all, of.quoted...), ':')
		all = append(all, of.names.rename(value, out)...)
	})
	return append(all, '}')
}

func (s *naming) list(raw []byte, out bool) []byte {
	all := append(make([]byte, 0, len(raw)+len(raw)/8), '[')
	jsonscan.Items(raw, func(item []byte) {
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, s.items.rename(item, out)...)
	})
	return append(all, ']')
}
