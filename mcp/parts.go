package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"earshot/internal/problem"
)

// A single resource may be larger than an answer: metadata and documents have up to 256 KiB, and a
// delivery contains its payload. Its large values are then cut or left out. The tools that read
// return them piece by piece.

// maxNamed is the number of values that a note names. Each of them takes a call to read.
const maxNamed = 5

// maxLeaf bounds a value in an answer that is too large. The bound shrinks if there are many
// values.
const maxLeaf = 4 << 10

// pieces are the arguments that all tools that read take in addition.
var pieces = openapi3.Schemas{
	"part": described(openapi3.NewStringSchema().WithMinLength(1), "Only where an answer said in note that a value was "+
		"too large: which value to read, as it was named there, for example data.metadata. Keep the other arguments."),
	"offset": described(openapi3.NewIntegerSchema().WithMin(0).WithDefault(0), "With part: where to go on, the "+
		"next_offset of the piece before."),
}

// shortened removes the large values of an answer. The note explains how to read them.
func shortened(body []byte, s *naming) (short []byte, note string) {
	const room = MaxAnswer - 4096 // for the note
	var cut []string
	short = body
	for leaf := maxLeaf; len(short) > room && leaf > 1; leaf /= 2 {
		cut = nil
		short = s.cut(body, "", leaf, &cut)
	}
	named := strings.Join(cut[:min(len(cut), maxNamed)], ", ")
	if more := len(cut) - maxNamed; more > 0 {
		named += fmt.Sprintf(" and %d more like these", more)
	}
	return short, fmt.Sprintf("Too large for an answer of %d KiB, so these values are cut or left out: %s. Read one with "+
		"the same arguments and part, from the tool that reads it.", MaxAnswer>>10, named)
}

// cut shortens an answer in the tools' names. Objects and lists of the caller become empty, and
// texts keep their beginning.
func (s *naming) cut(raw []byte, at string, leaf int, done *[]string) []byte {
	var members map[string]json.RawMessage
	var items []json.RawMessage
	switch {
	case len(raw) <= leaf:
		return raw
	case s != nil && s.ours != nil && json.Unmarshal(raw, &members) == nil:
		for _, name := range slices.Sorted(maps.Keys(members)) {
			members[name] = s.ours[name].names.cut(members[name], strings.TrimPrefix(at+"."+name, "."), leaf, done)
		}
		raw, _ = json.Marshal(members) // never fails: the JSON was read before
		return raw
	case s != nil && s.items != nil && json.Unmarshal(raw, &items) == nil:
		for i, item := range items {
			items[i] = s.items.cut(item, fmt.Sprintf("%s[%d]", at, i), leaf, done)
		}
		raw, _ = json.Marshal(items)
		return raw
	}
	*done = append(*done, fmt.Sprintf("%s (%d bytes)", at, len(raw)))
	var text string
	switch {
	case raw[0] == '{':
		return []byte("{}")
	case raw[0] == '[':
		return []byte("[]")
	case json.Unmarshal(raw, &text) != nil:
		return []byte("0") // a number with thousands of digits
	}
	raw, _ = json.Marshal(text[:boundary(text, leaf/2)])
	return raw
}

// boundary returns n, or less if n is inside a character.
func boundary(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// piece returns a part of a value from an offset in bytes. A text is returned as it is, any other
// value as JSON.
func piece(body []byte, arguments map[string]json.RawMessage) result {
	var part string
	var offset int
	if json.Unmarshal(arguments["part"], &part) != nil {
		return toolError(problem.Invalid("part", "type", "must be a text"))
	}
	if raw := arguments["offset"]; raw != nil && (json.Unmarshal(raw, &offset) != nil || offset < 0) {
		return toolError(problem.Invalid("offset", "minimum", "must be a whole number, at least 0"))
	}
	value, ok := find(body, part)
	if !ok {
		return toolError(problem.Invalid("part", "part", "is not in this answer; take it as it stands in note"))
	}
	text := string(value)
	_ = json.Unmarshal(value, &text) // other values stay as JSON
	if offset > len(text) || offset < len(text) && !utf8.RuneStart(text[offset]) {
		return toolError(problem.Invalid("offset", "maximum", "is not a next_offset of this part"))
	}
	// Escapes make some texts several times as long.
	for n := MaxAnswer; ; n /= 2 {
		rest := text[offset:]
		end := boundary(rest, n)
		answer := map[string]any{"text": rest[:end], "next_offset": nil}
		if end < len(rest) {
			answer["next_offset"] = offset + end
		}
		if body, _ = json.Marshal(answer); len(body) <= MaxAnswer { // never fails: a text and a number
			return result{body: body}
		}
	}
}

// find follows a path such as data[0].body.json.
func find(raw []byte, path string) ([]byte, bool) {
	for _, step := range strings.FieldsFunc(strings.ReplaceAll(path, "[", ".["), func(r rune) bool { return r == '.' }) {
		var members map[string]json.RawMessage
		var items []json.RawMessage
		if index, ok := strings.CutPrefix(step, "["); ok {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || json.Unmarshal(raw, &items) != nil || i < 0 || i >= len(items) {
				return nil, false
			}
			raw = items[i]
		} else if json.Unmarshal(raw, &members) != nil || members[step] == nil {
			return nil, false
		} else {
			raw = members[step]
		}
	}
	return raw, true
}
