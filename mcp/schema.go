package mcp

import (
	"maps"
	"slices"
	"strings"
)

// Schemas come from the contract, which is the only place that states a limit.
// Here they lose their references, because few agents follow those, and get the
// tools' names.

// schema writes a schema of the contract as the tools have it.
func (c *contract) schema(v any) object {
	in := c.target(v.(object))
	out := object{}
	for key, value := range in {
		switch key {
		case "properties":
			properties := object{}
			for name, of := range value.(object) {
				properties[snake(name)] = c.schema(of)
			}
			out[key] = properties
		case "items":
			out[key] = c.schema(value)
		case "oneOf":
			out["anyOf"] = c.schemas(value)
		case "required":
			out[key] = snakes(value)
		case "dependentRequired":
			pairs := object{}
			for name, needs := range value.(object) {
				pairs[snake(name)] = snakes(needs)
			}
			out[key] = pairs
		case "description":
			out[key] = c.prose(strings.TrimSpace(value.(string)))
		case "allOf", "example", "examples": // allOf: see below
		default:
			if !strings.HasPrefix(key, "x-") {
				out[key] = value
			}
		}
	}
	for _, part := range list(in["allOf"]) {
		merge(out, c.schema(part))
	}
	if out["unevaluatedProperties"] == false {
		// The parts are one object now, and every draft of JSON Schema knows this.
		delete(out, "unevaluatedProperties")
		out["additionalProperties"] = false
	}
	return out
}

func (c *contract) schemas(v any) []any {
	var all []any
	for _, of := range list(v) {
		all = append(all, c.schema(of))
	}
	return all
}

// merge puts one object's schema into another's.
func merge(into, part object) {
	properties := object{}
	maps.Copy(properties, at(into, "properties"))
	maps.Copy(properties, at(part, "properties"))
	required := append(texts(into["required"]), texts(part["required"])...)
	for key, value := range part {
		if key != "description" || into[key] == nil {
			into[key] = value
		}
	}
	into["properties"] = properties
	require(into, required)
}

// require says what an object's schema can't do without. Older drafts of JSON
// Schema know no empty list.
func require(schema object, names []string) {
	if len(names) > 0 {
		slices.Sort(names)
		schema["required"] = names
	}
}

// shapeOf is the shape of what a schema describes.
func (c *contract) shapeOf(v any) *shape {
	in := c.target(v.(object))
	s := &shape{}
	for name, of := range at(in, "properties") {
		s.add(name, c.shapeOf(of))
	}
	// Without a schema the items are the caller's own.
	if items := at(in, "items"); len(items) > 0 {
		s.items = c.shapeOf(items)
	}
	for _, part := range append(list(in["allOf"]), list(in["oneOf"])...) {
		inner := c.shapeOf(part)
		for name, m := range inner.members {
			s.add(name, m.shape)
		}
	}
	return s
}

// target follows a reference. What stands beside it counts too.
func (c *contract) target(v object) object {
	ref, ok := v["$ref"].(string)
	if !ok {
		return v
	}
	out := maps.Clone(at(c.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
	for key, value := range v {
		if key != "$ref" {
			out[key] = value
		}
	}
	return c.target(out)
}

// at walks down the members of objects; what isn't there is an empty object.
func at(v object, names ...string) object {
	for _, name := range names {
		v, _ = v[name].(object)
	}
	return v
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// texts are the strings of a list, which was read or made here.
func texts(v any) []string {
	if made, ok := v.([]string); ok {
		return made
	}
	var all []string
	for _, item := range list(v) {
		all = append(all, text(item))
	}
	return all
}

func snakes(v any) []string {
	all := texts(v)
	for i, name := range all {
		all[i] = snake(name)
	}
	return all
}
