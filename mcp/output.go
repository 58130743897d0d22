package mcp

import (
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// output is the schema of an answer: the operation's data or an error. It includes errors, because
// some clients validate every answer.
func (r *ready) output(c *contract) *openapi3.Schema {
	failed := c.schema(c.Components.Schemas["ErrorBody"])
	// All tools have the same error schema. Only docs/mcp.md describes the details of each code.
	failed.Value.Properties["details"].Value.Properties = nil
	s := openapi3.NewObjectSchema().WithoutAdditionalProperties()
	s.Properties["error"] = failed
	s.Properties["note"] = described(openapi3.NewStringSchema(),
		"Says that the answer holds less than was asked for, and how to get the rest.")
	s.AnyOf = openapi3.SchemaRefs{having("data"), having("error")}
	if !r.writes() {
		s.AnyOf = append(s.AnyOf, having("text", "next_offset"))
		s.Properties["text"] = described(openapi3.NewStringSchema(), "With part: a piece of the value, or of its JSON.")
		s.Properties["next_offset"] = described(&openapi3.Schema{Type: &openapi3.Types{"integer", "null"}},
			"With part: the offset of the next piece; null after the last.")
	}
	var data openapi3.SchemaRefs
	for _, op := range r.operations {
		one := op.output.Properties["data"]
		if !slices.ContainsFunc(data, func(other *openapi3.SchemaRef) bool { return same(*one.Value, *other.Value) }) {
			data = append(data, one)
		}
		if next := op.next(); next != "" {
			s.Properties[next] = op.output.Properties[next]
		}
		// Lists that clients synchronize have these members.
		for _, name := range []string{"sync_cursor", "deleted"} {
			if property := op.output.Properties[name]; property != nil {
				s.Properties[name] = property
			}
		}
		if op.tagged {
			s.Properties["etag"] = described(openapi3.NewStringSchema(),
				"Stands for data as it is, for the if_match of a change.")
		}
		if op.creates {
			s.Properties["created"] = described(openapi3.NewBoolSchema(),
				"Whether it was made just now; false if it was there already.")
		}
	}
	s.Properties["data"] = data[0]
	if len(data) > 1 {
		s.Properties["data"] = described(&openapi3.Schema{AnyOf: data}, "The result of the action.")
	}
	return s
}

func described(s *openapi3.Schema, words string) *openapi3.SchemaRef {
	s.Description = words
	return s.NewRef()
}

func having(names ...string) *openapi3.SchemaRef { return (&openapi3.Schema{Required: names}).NewRef() }

// next returns the name of the member with the next page's cursor; "" if there are no pages.
func (o *operation) next() string {
	for _, name := range []string{"next_cursor", "next_after"} {
		if o.output.Properties[name] != nil {
			return name
		}
	}
	return ""
}

// answersItems reports whether each item of the answer may be an error.
func (o *operation) answersItems() bool {
	data := o.answer.members["data"].names
	if data == nil || data.items == nil {
		return false
	}
	failed := data.items.members["error"].names
	return failed != nil && failed.members["code"].names != nil
}
