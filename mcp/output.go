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
	properties := object{"error": failed}
	for _, op := range r.operations {
		answer := at(op.output, "properties")
		if one := answer["data"].(object); !slices.ContainsFunc(data, func(other any) bool { return same(one, other.(object)) }) {
			data = append(data, one)
		}
		if cursor, paged := answer["next_cursor"]; paged {
			properties["next_cursor"] = cursor
			properties["note"] = object{
				"type": "string", "description": "Says that the page holds less than was asked for, and how to get the rest.",
			}
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
		"anyOf": []object{{"required": []string{"data"}}, {"required": []string{"error"}}},
	}
}

// lists reports whether the operation answers pages.
func (o *operation) lists() bool {
	return slices.Contains(slices.Collect(maps.Keys(at(o.output, "properties"))), "next_cursor")
}
