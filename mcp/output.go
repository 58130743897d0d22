package mcp

import (
	"maps"
	"slices"
)

// output is what a call answers: the operation's data or an error. Errors are in
// the schema too, because some clients hold every answer against it.
func (r *ready) output(c *contract) object {
	var data []any
	failed := c.schema(object{"$ref": "#/components/schemas/ErrorBody"})
	// The same for all, so what each code has in it stands in docs/mcp.md only.
	delete(at(failed, "properties", "details"), "properties")
	properties := object{"error": failed, "note": object{
		"type": "string", "description": "Says that the answer holds less than was asked for, and how to get the rest.",
	}}
	forms := []object{{"required": []string{"data"}}, {"required": []string{"error"}}}
	if !r.writes() {
		forms = append(forms, object{"required": []string{"text", "next_offset"}})
		properties["text"] = object{"type": "string", "description": "With part: a piece of the value, or of its JSON."}
		properties["next_offset"] = object{
			"type": []string{"integer", "null"}, "description": "With part: the offset of the next piece; null after the last.",
		}
	}
	for _, op := range r.operations {
		answer := at(op.output, "properties")
		one := answer["data"].(object)
		if !slices.ContainsFunc(data, func(other any) bool { return same(one, other.(object)) }) {
			data = append(data, one)
		}
		if cursor, paged := answer["next_cursor"]; paged {
			properties["next_cursor"] = cursor
		}
		if op.creates {
			properties["created"] = object{
				"type": "boolean", "description": "Whether it was made just now; false if it was there already.",
			}
		}
	}
	properties["data"] = data[0]
	if len(data) > 1 {
		properties["data"] = object{"anyOf": data, "description": "What the action returns."}
	}
	return object{
		"type": "object", "properties": properties, "additionalProperties": false,
		"anyOf": forms,
	}
}

// lists reports whether the operation answers pages.
func (o *operation) lists() bool {
	return slices.Contains(slices.Collect(maps.Keys(at(o.output, "properties"))), "next_cursor")
}
