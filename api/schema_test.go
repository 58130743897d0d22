package api_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// This file reads the schemas of requests and breaks their limits one by one.

func required(s *openapi3.Schema) []string {
	names := slices.Clone(s.Required)
	for _, part := range s.AllOf {
		names = append(names, required(part.Value)...)
	}
	return names
}

// properties returns the properties of a schema and of its parts.
func properties(s *openapi3.Schema) map[string]*openapi3.Schema {
	all := map[string]*openapi3.Schema{}
	for name, p := range s.Properties {
		all[name] = p.Value
	}
	for _, part := range s.AllOf {
		maps.Copy(all, properties(part.Value))
	}
	return all
}

// flaw is a value that a member doesn't allow.
type flaw struct {
	// field is the name of the member in details.fields, for example body.text or events[0].
	field string
	// value is the value to send as the top-level member.
	value any
	// limit is the keyword that the value breaks.
	limit string
}

// samples has a value of each JSON type.
var samples = map[string]any{
	"string": "x", "integer": 7, "number": 1.5, "boolean": true, "array": []any{}, "object": object{}, "null": nil,
}

// flaws returns a value for each limit of the schema that breaks it.
func flaws(field string, s *openapi3.Schema) []flaw {
	var all []flaw
	add := func(limit string, value any) { all = append(all, flaw{field, value, limit}) }
	for name, value := range samples {
		if !allows(s, name) {
			add("type "+name, value)
		}
	}
	switch {
	case s.Type.Includes("string") && s.Type.Includes("object"): // free-form
	case s.Type.Includes("string"):
		addText(s, add)
	case s.Type.Includes("integer"):
		add("minimum", *s.Min-1)
		add("maximum", *s.Max+1)
		add("maximum of a 64-bit integer", 1e30)
	case s.Type.Includes("array") && s.Items != nil:
		addItems(s, add)
		for _, f := range flaws(field+"[0]", s.Items.Value) {
			// The result of a separately validated item reports the flaws within it.
			if s.Extensions["x-judged-alone"] == true && f.field != field+"[0]" {
				continue
			}
			all = append(all, flaw{f.field, []any{f.value}, f.limit})
		}
	}
	if s.MaxProps != nil {
		tooMany := object{}
		for range *s.MaxProps + 1 {
			tooMany[strings.Repeat("k", len(tooMany)+1)] = "v"
		}
		add("maxProperties", tooMany)
	}
	if values := s.AdditionalProperties.Schema; values != nil {
		for _, f := range flaws(field+".k", values.Value) {
			all = append(all, flaw{f.field, object{"k": f.value}, f.limit})
		}
	}
	for name, p := range properties(s) {
		for _, f := range flaws(field+"."+name, p) {
			all = append(all, flaw{f.field, object{name: f.value}, f.limit})
		}
	}
	return all
}

func allows(s *openapi3.Schema, name string) bool {
	return s.Type == nil || s.Type.Includes(name) || (name == "integer" && s.Type.Includes("number"))
}

func addText(s *openapi3.Schema, add func(string, any)) {
	if s.MinLength > 0 {
		add("minLength", "")
	}
	if s.MaxLength != nil {
		add("maxLength", strings.Repeat("x", int(*s.MaxLength)+1))
	}
	if s.Pattern != "" || s.Format != "" || len(s.Enum) > 0 {
		// The escape is a control character, the only kind of character that the pattern of a name
		// excludes.
		add("pattern, format or enum", "Not\x1bthat.")
	}
	if !opaque(s) {
		add("NUL", "a\x00b")
	}
}

// opaque reports whether a text is an id of the service. Every text is a possible id, and an
// unknown one is 404.
func opaque(s *openapi3.Schema) bool {
	return s.Type.Includes("string") && s.MaxLength == nil && s.Pattern == "" && s.Format == "" && len(s.Enum) == 0
}

func addItems(s *openapi3.Schema, add func(string, any)) {
	if s.MinItems > 0 {
		add("minItems", []any{})
	}
	if s.MaxItems != nil {
		item := "x"
		if match := patterns[s.Items.Value.Pattern]; match != nil {
			item = match(&place{}, 1, 1)
		}
		add("maxItems", slices.Repeat([]any{item}, int(*s.MaxItems)+1))
	}
}
