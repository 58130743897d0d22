package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-faster/errors"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ready is a tool with its operations.
type ready struct {
	tool
	operations []*operation // in the order of the actions
	listed     *sdk.Tool
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
	r.listed = r.described(c)
	return r, nil
}

func (r *ready) writes() bool { return slices.ContainsFunc(r.operations, (*operation).writes) }

// hasDefault reports whether the first action is the default.
func (r *ready) hasDefault() bool { return r.standard || !r.writes() }

// described returns the tool as it is listed.
func (r *ready) described(c *contract) *sdk.Tool {
	destroys, sends := r.destroys, r.sends
	hints := &sdk.ToolAnnotations{
		Title: r.title, ReadOnlyHint: !r.writes(), IdempotentHint: r.repeats || !r.writes(),
		DestructiveHint: &destroys, OpenWorldHint: &sends,
	}
	return &sdk.Tool{
		Name: r.name, Title: r.title, Description: r.description, Annotations: hints,
		InputSchema: encoded(r.input()), OutputSchema: encoded(r.output(c)),
	}
}

// encoded returns a value that was made from the contract as JSON.
func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // never happens: all of it was read from JSON
	}
	return raw
}

// input is one flat object, which every agent can fill in. It has the arguments of all actions, and
// the description of action lists the needs of each one. The operation itself reports a missing
// argument.
func (r *ready) input() *openapi3.Schema {
	schema := openapi3.NewObjectSchema()
	if len(r.actions) == 1 {
		*schema = *r.operations[0].input
		schema.Properties = maps.Clone(schema.Properties)
	} else {
		r.addArguments(schema)
	}
	for i := range r.operations {
		schema.Examples = append(schema.Examples, r.example(i))
	}
	if !r.writes() {
		maps.Copy(schema.Properties, pieces)
	}
	return schema.WithoutAdditionalProperties()
}

// addArguments adds the arguments of several actions.
func (r *ready) addArguments(schema *openapi3.Schema) {
	schema.Properties["action"] = r.actionSchema().NewRef()
	if !r.hasDefault() {
		schema.Required = []string{"action"}
	}
	for _, op := range r.operations {
		for name := range op.input.Properties {
			if schema.Properties[name] == nil {
				schema.Properties[name] = r.argument(name)
			}
		}
		r.addPairs(schema, op)
	}
	for _, name := range r.operations[0].input.Required {
		if !slices.ContainsFunc(r.operations, func(op *operation) bool { return !slices.Contains(op.input.Required, name) }) {
			schema.Required = append(schema.Required, name)
		}
	}
	slices.Sort(schema.Required)
}

// addPairs adds the arguments of an operation that need others, unless another action takes them alone.
func (r *ready) addPairs(schema *openapi3.Schema, of *operation) {
	for name, needs := range of.input.DependentRequired {
		if !slices.ContainsFunc(r.operations, func(op *operation) bool {
			return op.input.Properties[name] != nil && !slices.Equal(op.input.DependentRequired[name], needs)
		}) {
			if schema.DependentRequired == nil {
				schema.DependentRequired = map[string][]string{}
			}
			schema.DependentRequired[name] = needs
		}
	}
}

// example returns a call of the action, from the contract's examples.
func (r *ready) example(i int) map[string]any {
	example := maps.Clone(r.operations[i].example)
	if name := r.actions[i].name; name != "" {
		example["action"] = name
	}
	return example
}

func (r *ready) actionSchema() *openapi3.Schema {
	schema := openapi3.NewStringSchema()
	lines := []string{"What to do."}
	for i, a := range r.actions {
		op := r.operations[i]
		takes := slices.DeleteFunc(slices.Sorted(maps.Keys(op.input.Properties)), func(name string) bool {
			return slices.Contains(op.input.Required, name)
		})
		schema.Enum = append(schema.Enum, a.name)
		lines = append(lines, fmt.Sprintf("%s: %s.%s%s", a.name, op.summary,
			listed(" Needs ", op.input.Required), listed(" Takes ", takes)))
	}
	if r.hasDefault() {
		schema.Default = schema.Enum[0]
	}
	schema.Description = strings.Join(lines, "\n")
	return schema
}

func listed(intro string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return intro + strings.Join(names, ", ") + "."
}

// argument is the schema of an argument that several actions may take. If their limits differ, the
// schema has a variant for each limit.
func (r *ready) argument(name string) *openapi3.SchemaRef {
	type variant struct {
		openapi3.Schema
		actions, words []string
	}
	var variants []*variant
	for i, op := range r.operations {
		taken := op.input.Properties[name]
		if taken == nil {
			continue
		}
		limits := *taken.Value
		limits.Description = ""
		at := slices.IndexFunc(variants, func(v *variant) bool { return same(v.Schema, limits) })
		if at < 0 {
			variants = append(variants, &variant{Schema: limits})
			at = len(variants) - 1
		}
		v := variants[at]
		v.actions = append(v.actions, r.actions[i].name)
		if words := taken.Value.Description; words != "" && !slices.Contains(v.words, words) {
			v.words = append(v.words, words)
		}
	}
	var all openapi3.SchemaRefs
	for _, v := range variants {
		v.Description = strings.Join(v.words, " Or: ")
		if len(variants) > 1 {
			v.Description = fmt.Sprintf("%s: %s", strings.Join(v.actions, ", "), v.Description)
		}
		all = append(all, v.NewRef())
	}
	if len(all) == 1 {
		return all[0]
	}
	return (&openapi3.Schema{AnyOf: all}).NewRef()
}

func same(a, b openapi3.Schema) bool { return reflect.DeepEqual(a, b) }
