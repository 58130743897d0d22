package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"earshot/internal/event"
)

// This file derives the last allowed value of each limit from the schemas of requests. The first
// refused values are in schema_test.go.

// place is the target of a request: an organization, and a copy of its ids, which a value may
// change.
type place struct {
	fixture
	operation operation
	// n is a counter that makes each text unique.
	n int
}

// edge is a value that a member barely allows.
type edge struct {
	// field is the name of the member in details.fields, and limit is the keyword.
	field, limit string
	// make returns the value to send as the top-level member.
	make func(t *testing.T, p *place) any
}

// supplied are the members that need a true value, so that a text of the right length isn't enough.
// The size is the wanted length of a list or a text.
var supplied = map[string]func(t *testing.T, p *place, size int) any{
	// They name existing resources, and ids have a fixed length.
	"contactId": func(_ *testing.T, p *place, _ int) any { return p.ids["contactId"] },
	"memberId":  func(_ *testing.T, p *place, _ int) any { return p.ids["memberId"] },
	"boardId":   func(_ *testing.T, p *place, _ int) any { return p.ids["boardId"] },
	"parentId":  func(_ *testing.T, p *place, _ int) any { return p.ids["commentId"] },
	"tagIds": func(t *testing.T, p *place, size int) any {
		return p.several(t, size, "/v1/boards/"+p.ids["boardId"]+"/tags", "name")
	},
	"postIds": func(t *testing.T, p *place, size int) any {
		return p.several(t, size, "/v1/boards/"+p.ids["boardId"]+"/posts", "title")
	},
	"sourceIds": func(t *testing.T, p *place, size int) any {
		return p.several(t, size, "/v1/boards/"+p.ids["boardId"]+"/posts", "title")
	},
	// It repeats the name of a board, which the operation deletes.
	"confirmName": func(t *testing.T, p *place, size int) any {
		name := p.text(size)
		p.ids["boardId"] = p.ID(t, "/v1/boards", object{"name": name})
		return name
	},
	// It must be a public address, and no shorter one is public.
	"url": func(_ *testing.T, p *place, size int) any {
		start := "https://a.io/"
		return start + p.text(max(0, size-len(start)))
	},
	// It must be in the future.
	"expiresAt": func(*testing.T, *place, int) any { return "9999-12-31T23:59:59.999999Z" },
	// Without it, externalUserId must belong to an existing contact.
	"createContact": func(*testing.T, *place, int) any { return true },
	// A window must be in the past.
	"since": func(*testing.T, *place, int) any { return "2024-02-29T23:59:59-00:30" },
	"until": func(*testing.T, *place, int) any { return "2026-03-12T10:41:07.000001+05:45" },
}

// prepare makes a new resource for operations that use it up.
var prepare = map[string]func(t *testing.T, p *place){
	"rotateApiKey": func(t *testing.T, p *place) {
		p.ids["keyId"] = p.ID(t, "/v1/api-keys", object{"name": "Spare", "scope": "read"})
	},
	"eraseContact": func(t *testing.T, p *place) {
		p.ids["contactId"] = p.ID(t, "/v1/contacts", object{"name": "Noor"})
	},
	"recoverWebhook": func(t *testing.T, p *place) {
		p.ids["webhookId"] = p.ID(t, "/v1/webhooks", object{"url": "https://hooks.example.com/in", "events": event.Types})
	},
	// A rejection may remove all submissions of the organization.
	"rejectSubmission": func(t *testing.T, p *place) { p.fixture = newFixture(t, p.App) },
}

// several makes n resources and returns their ids.
func (p *place) several(t *testing.T, n int, path, named string) []any {
	t.Helper()
	ids := make([]any, n)
	for i := range ids {
		ids[i] = p.ID(t, path, object{named: p.text(2)})
	}
	return ids
}

// merge makes the post a duplicate. Only a duplicate can be sent back with this status.
func (p *place) merge(t *testing.T) {
	t.Helper()
	into := "/v1/posts/" + p.ids["postId"]
	p.ids["postId"] = p.ID(t, "/v1/boards/"+p.ids["boardId"]+"/posts", object{"title": p.text(2)})
	p.Make(t, http.MethodPost, into+"/merge", object{"sourceIds": []string{p.ids["postId"]}})
}

// text returns a new text with a number of characters, most of which have several bytes.
func (p *place) text(size int) string {
	if size == 0 {
		return ""
	}
	p.n++
	return string(rune(0x4E00+p.n)) + strings.Repeat("é😀", size)[:runes(size-1)]
}

// runes returns the number of bytes in the first n characters of é😀é😀….
func runes(n int) int { return n/2*len("é😀") + n%2*len("é") }

// patterns has functions that return matching texts, as short and as long as possible.
var patterns = map[string]func(p *place, low, high int) string{
	"^[a-z0-9]+(-[a-z0-9]+)*$": func(p *place, _, size int) string {
		p.n++
		if size == 1 {
			return strconv.FormatInt(int64(p.n%36), 36)
		}
		s := fmt.Sprintf("%04d", p.n) + strings.Repeat("-9", size)
		return s[:size-1] + "z"
	},
	"^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$": func(*place, int, int) string { return "#09afaf" },
	`^[^\x00-\x1f\x7f-\x9f]*$`:           func(p *place, _, size int) string { return p.text(size) },
	"^#[0-9A-Fa-f]{6}$":                  func(*place, int, int) string { return "#09afaf" },
	"^[A-Z]{3}$":                         func(*place, int, int) string { return "AZZ" },
	"^https?://[a-z0-9.-]+(:[0-9]{1,5})?$": func(p *place, _, size int) string {
		p.n++
		host := fmt.Sprintf("h%d", p.n)
		for len("https://")+len(host)+len(".a:65535") < size {
			host += ".a"
		}
		return "https://" + host + ":65535"
	},
}

// formats has texts that barely match the format.
var formats = map[string]func(p *place, size int) []any{
	"email": func(p *place, size int) []any {
		host := "@example.com"
		// Each member needs another address.
		return []any{strings.ToLower(p.text(1)) + "@b", strings.ToLower(p.text(size-len(host)) + host)}
	},
	"date-time": func(*place, int) []any {
		return []any{
			"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2026-03-12T10:41:07.000001+05:45",
			"2024-02-29T23:59:59-00:30",
		}
	},
}

// known are the keywords for which the walk has values.
var known = []string{
	"type", "description", "default", "properties", "required", "allOf", "dependentRequired", "items",
	"additionalProperties", "enum", "pattern", "format", "minLength", "maxLength", "minimum", "maximum",
	"minItems", "maxItems", "maxProperties",
}

// requireKnown fails for a schema with a keyword that the walk would miss.
func requireKnown(t *testing.T, field string, s *openapi3.Schema) {
	t.Helper()
	text, err := s.MarshalJSON()
	require.NoError(t, err)
	var keywords map[string]any
	require.NoError(t, json.Unmarshal(text, &keywords))
	for keyword := range keywords {
		require.True(t, slices.Contains(known, keyword) || strings.HasPrefix(keyword, "x-"),
			"%s: the tests don't know the keyword %s", field, keyword)
	}
	require.Contains(t, []any{true, nil, any(object{"type": "string"})}, keywords["additionalProperties"], field)
	require.Contains(t, []string{"", "int64", "email", "date-time"}, s.Format, field)
}

// edges returns the last values that the schema allows.
func edges(t *testing.T, field string, s *openapi3.Schema) []edge {
	t.Helper()
	requireKnown(t, field, s)
	var all []edge
	value := func(limit string, v any) {
		all = append(all, edge{field, limit, func(*testing.T, *place) any { return v }})
	}
	supply, isSupplied := supplied[field]
	switch {
	case s.Type.Includes("string") && s.Type.Includes("object"): // free-form
		for name, sample := range samples {
			value("type "+name, sample)
		}
		return all
	case isSupplied:
		all = append(all, suppliedEdges(field, s, supply)...)
	case s.Type.Includes("string"):
		all = append(all, textEdges(t, field, s)...)
	case s.Type.Includes("integer"):
		require.True(t, s.Min != nil && s.Max != nil, "%s: an integer without limits", field)
		value("minimum", int64(*s.Min))
		value("maximum", int64(*s.Max))
	case s.Type.Includes("boolean"):
		value("true", true)
		value("false", false)
	case s.Type.Includes("array"):
		all = append(all, itemEdges(t, field, s)...)
	default:
		require.True(t, s.Type.Includes("object"), "%s: the tests don't know what to fill in", field)
		all = append(all, objectEdges(t, field, s)...)
	}
	if s.Type.Includes("null") {
		value("null", nil)
	}
	return all
}

func suppliedEdges(field string, s *openapi3.Schema, supply func(*testing.T, *place, int) any) []edge {
	var all []edge
	add := func(limit string, size int) {
		all = append(all, edge{field, limit, func(t *testing.T, p *place) any { return supply(t, p, size) }})
	}
	if s.Type.Includes("array") {
		add("one item", 1)
		add("minItems", int(s.MinItems))
		add("maxItems", int(*s.MaxItems))
		return all
	}
	add("minLength", int(s.MinLength))
	if s.MaxLength != nil {
		add("maxLength", int(*s.MaxLength))
	}
	return all
}

func textEdges(t *testing.T, field string, s *openapi3.Schema) []edge {
	t.Helper()
	var all []edge
	add := func(limit string, value func(p *place) any) {
		all = append(all, edge{field, limit, func(_ *testing.T, p *place) any { return value(p) }})
	}
	low, high := int(s.MinLength), 0
	if s.MaxLength != nil {
		high = int(*s.MaxLength)
	}
	switch {
	case len(s.Enum) > 0:
		for _, v := range s.Enum {
			all = append(all, edge{field, "enum", func(t *testing.T, p *place) any {
				if v == "duplicate" && p.operation.RequestBody != nil {
					p.merge(t)
				}
				return v
			}})
		}
	case s.Pattern != "":
		match := patterns[s.Pattern]
		require.NotNil(t, match, "%s: the tests have no text for the pattern %s", field, s.Pattern)
		for _, size := range []int{max(low, 1), max(high, 1)} {
			add("pattern", func(p *place) any { return match(p, low, size) })
		}
	case s.Format != "":
		for i := range formats[s.Format](&place{}, high) {
			add("format", func(p *place) any { return formats[s.Format](p, high)[i] })
		}
	default:
		require.Positive(t, high, "%s: a text of any length has to name something, and the tests don't know what", field)
		add("minLength", func(p *place) any { return p.text(low) })
		add("maxLength", func(p *place) any { return p.text(high) })
	}
	return all
}

func itemEdges(t *testing.T, field string, s *openapi3.Schema) []edge {
	t.Helper()
	items := edges(t, field+"[0]", s.Items.Value)
	var all []edge
	for _, e := range items {
		all = append(all, edge{e.field, e.limit, func(t *testing.T, p *place) any { return []any{e.make(t, p)} }})
	}
	list := func(limit string, n int) {
		all = append(all, edge{field, limit, func(t *testing.T, p *place) any {
			values := []any{}
			for i := range n {
				values = append(values, items[i%len(items)].make(t, p))
			}
			return values
		}})
	}
	list("minItems", int(s.MinItems))
	if s.MaxItems != nil {
		list("maxItems", int(*s.MaxItems))
	} else {
		list("all of them", len(items))
	}
	return all
}

func objectEdges(t *testing.T, field string, s *openapi3.Schema) []edge {
	t.Helper()
	var all []edge
	members, needed := properties(s), required(s)
	if s.MaxProps != nil {
		many := object{}
		for i := range *s.MaxProps {
			many[fmt.Sprint("é", i)] = i
			if s.AdditionalProperties.Schema != nil { // texts
				many[fmt.Sprint("é", i)] = fmt.Sprint("\x00\"", i)
			}
		}
		all = append(all, edge{field, "maxProperties", func(*testing.T, *place) any { return many }})
	}
	if len(needed) == 0 {
		all = append(all, edge{field, "no members", func(*testing.T, *place) any { return object{} }})
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		for _, e := range edges(t, field+"."+name, members[name]) {
			all = append(all, edge{e.field, e.limit, func(t *testing.T, p *place) any {
				value := object{}
				for _, other := range needed {
					value[other] = sample(t, field+"."+other, members[other]).make(t, p)
				}
				value[name] = e.make(t, p)
				return value
			}})
		}
	}
	return all
}

// sample returns some value that the member allows, except null.
func sample(t *testing.T, field string, s *openapi3.Schema) edge {
	t.Helper()
	all := edges(t, field, s)
	return all[slices.IndexFunc(all, func(e edge) bool { return !strings.HasSuffix(e.limit, "null") })]
}

// companions returns the members that must be sent together with a member, and are null with it.
func companions(s *openapi3.Schema, name string) []string {
	all := slices.Clone(s.DependentRequired[name])
	for _, part := range s.AllOf {
		all = append(all, companions(part.Value, name)...)
	}
	return all
}

// body returns the smallest body that the operation accepts with the given members.
func (p *place) body(t *testing.T, given object) object {
	t.Helper()
	s := p.operation.schema()
	members, body := properties(s), object{}
	for _, name := range required(s) {
		if _, ok := given[name]; !ok {
			body[name] = sample(t, name, members[name]).make(t, p)
		}
	}
	for name, value := range given {
		body[name] = value
		for _, other := range companions(s, name) {
			if _, ok := given[other]; ok {
				continue
			}
			if body[other] = nil; value != nil {
				body[other] = sample(t, other, members[other]).make(t, p)
			}
		}
	}
	if members["createContact"] != nil {
		oneContact(body)
	}
	return body
}

// oneContact leaves one id of a contact in the body. With an externalUserId, it also sets
// createContact.
func oneContact(body object) {
	if body["contactId"] != nil {
		delete(body, "externalUserId")
		delete(body, "createContact")
	} else if body["externalUserId"] != nil {
		body["createContact"] = true
	}
}

// send sends the body to the operation and requires success.
func (p *place) send(t *testing.T, what string, body object) object {
	t.Helper()
	a := p.Do(t, p.operation.method, p.operation.filled(t, p.ids), body)
	require.Less(t, a.Status, http.StatusMultipleChoices, "%s: %s", what, a.Raw)
	return a.Data()
}

// at returns a place for the operation.
func (n fixture) at(t *testing.T, o operation, count int) *place {
	t.Helper()
	p := &place{fixture{n.Tenant, maps.Clone(n.ids)}, o, count * 100}
	if before := prepare[o.OperationID]; before != nil {
		before(t, p)
	}
	return p
}
