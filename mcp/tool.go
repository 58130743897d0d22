package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-faster/errors"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ready is a tool with the operations that it reaches.
type ready struct {
	tool
	operations []*operation // as the actions
}

func (c *contract) ready(t tool) (*ready, error) {
	r := &ready{tool: t}
	for _, a := range t.actions {
		op, ok := c.operations[a.operation]
		if !ok {
			return nil, errors.Errorf("%s: the contract has no operation %s", t.name, a.operation)
		}
		r.operations = append(r.operations, op)
	}
	return r, nil
}

func (r *ready) writes() bool { return slices.ContainsFunc(r.operations, (*operation).writes) }

// described is the tool as it is listed.
func (r *ready) described(c *contract) *sdk.Tool {
	destroys, sends := r.destroys, r.sends
	hints := &sdk.ToolAnnotations{
		Title: r.title, ReadOnlyHint: !r.writes(), IdempotentHint: r.repeats || !r.writes(),
		DestructiveHint: &destroys, OpenWorldHint: &sends,
	}
	return &sdk.Tool{
		Name: r.name, Title: r.title, Description: r.description, Annotations: hints,
		InputSchema: r.input(), OutputSchema: r.output(c),
	}
}

// input is one flat object, which every agent can fill in: the arguments of all
// actions, and what each needs in the description of action. What an action can't
// do without, its operation says when it is missing.
func (r *ready) input() object {
	if len(r.actions) == 1 {
		schema := maps.Clone(r.operations[0].input)
		schema["examples"] = []object{r.example(0)}
		if !r.writes() {
			schema["properties"] = maps.Clone(at(schema, "properties"))
			maps.Copy(at(schema, "properties"), pieces)
		}
		return schema
	}
	properties, required := object{"action": r.actionSchema()}, []string{}
	if r.writes() {
		required = append(required, "action")
	}
	var examples []object
	for i, op := range r.operations {
		examples = append(examples, r.example(i))
		for name := range at(op.input, "properties") {
			if properties[name] == nil {
				properties[name] = r.argument(name)
			}
		}
	}
	for _, name := range texts(r.operations[0].input["required"]) {
		if !slices.ContainsFunc(r.operations, func(op *operation) bool { return !op.requires(name) }) {
			required = append(required, name)
		}
	}
	if !r.writes() {
		maps.Copy(properties, pieces)
	}
	schema := object{"type": "object", "properties": properties, "examples": examples}
	require(schema, required)
	return schema
}

func (o *operation) requires(name string) bool {
	return slices.Contains(texts(o.input["required"]), name)
}

// example is a call of the action, from the contract's examples.
func (r *ready) example(i int) object {
	example := maps.Clone(r.operations[i].example)
	if name := r.actions[i].name; name != "" {
		example["action"] = name
	}
	return example
}

func (r *ready) actionSchema() object {
	var names, lines []string
	for i, a := range r.actions {
		op := r.operations[i]
		needs := texts(op.input["required"])
		var takes []string
		for _, name := range slices.Sorted(maps.Keys(at(op.input, "properties"))) {
			if !slices.Contains(needs, name) {
				takes = append(takes, name)
			}
		}
		names = append(names, a.name)
		lines = append(lines, fmt.Sprintf("%s: %s.%s%s", a.name, op.summary,
			listed(" Needs ", needs), listed(" Takes ", takes)))
	}
	schema := object{"type": "string", "enum": names}
	if !r.writes() {
		schema["default"] = names[0]
	}
	schema["description"] = "What to do.\n" + strings.Join(lines, "\n")
	return schema
}

func listed(intro string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return intro + strings.Join(names, ", ") + "."
}

// argument is the schema of an argument that several actions may take. Where they
// have other limits for it, each has its own.
func (r *ready) argument(name string) object {
	type variant struct {
		schema  object
		actions []string
		words   []string
	}
	var variants []*variant
	for i, op := range r.operations {
		schema, ok := at(op.input, "properties")[name].(object)
		if !ok {
			continue
		}
		limits := maps.Clone(schema)
		delete(limits, "description")
		at := slices.IndexFunc(variants, func(v *variant) bool { return same(v.schema, limits) })
		if at < 0 {
			variants = append(variants, &variant{schema: limits})
			at = len(variants) - 1
		}
		v := variants[at]
		v.actions = append(v.actions, r.actions[i].name)
		if words := text(schema["description"]); words != "" && !slices.Contains(v.words, words) {
			v.words = append(v.words, words)
		}
	}
	var all []any
	for _, v := range variants {
		words := strings.Join(v.words, " Or: ")
		if len(variants) > 1 {
			words = fmt.Sprintf("%s: %s", strings.Join(v.actions, ", "), words)
		}
		v.schema["description"] = words
		all = append(all, v.schema)
	}
	if len(all) == 1 {
		return all[0].(object)
	}
	return object{"anyOf": all}
}

// same compares schemas as they will be read.
func same(a, b object) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}
