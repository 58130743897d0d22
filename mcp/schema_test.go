package mcp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
	"earshot/mcp"
)

// limits are the keywords of JSON Schema for limits in the contract.
var limits = []string{
	"type", "enum", "const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems",
	"maxItems", "uniqueItems", "minProperties", "maxProperties", "default",
}

// names returns the names of the operation's parameters and of its body's members.
func (o operation) names() []string {
	names := slices.Collect(maps.Keys(o.arguments()))
	slices.Sort(names)
	return names
}

// arguments returns the schemas of parameters and body, by the contract's names.
func (o operation) arguments() map[string]*openapi3.Schema {
	all := map[string]*openapi3.Schema{}
	for _, p := range o.Parameters {
		all[p.Value.Name] = p.Value.Schema.Value
	}
	if o.RequestBody != nil {
		maps.Copy(all, members(o.body()))
	}
	return all
}

func (o operation) body() *openapi3.Schema {
	return o.RequestBody.Value.Content.Get("application/json").Schema.Value
}

// members returns the members of an object and of its parts.
func members(s *openapi3.Schema) map[string]*openapi3.Schema {
	all := map[string]*openapi3.Schema{}
	for name, p := range s.Properties {
		all[name] = p.Value
	}
	for _, part := range s.AllOf {
		maps.Copy(all, members(part.Value))
	}
	return all
}

// required returns the names of required arguments.
func (o operation) required() (names []string) {
	for _, p := range o.Parameters {
		if p.Value.Required {
			names = append(names, p.Value.Name)
		}
	}
	if o.RequestBody != nil {
		names = append(names, o.body().Required...)
		for _, part := range o.body().AllOf {
			names = append(names, part.Value.Required...)
		}
	}
	return names
}

func TestEveryLimitOfTheContractIsInTheInputSchemaOfItsTool(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	tools, all := newAgent(t, app, app.Tenant(t).Key).everyTool(t), operations(t)
	checked := 0
	for _, row := range mcp.Table() {
		input := tools[row.Tool].InputSchema.(object)
		for name, stated := range all[row.Operation].arguments() {
			if name == "If-None-Match" { // a tool stores no earlier answer
				continue
			}
			argument, ok := input["properties"].(object)[mcp.Snake(name)].(object)
			require.True(t, ok, "%s has no %s", row.Tool, name)
			require.True(t, described(argument), "%s.%s", row.Tool, name)
			found, compared := difference(t, stated, argument)
			require.Empty(t, found, "%s.%s for %s", row.Tool, name, row.Operation)
			checked += compared
		}
		for _, name := range all[row.Operation].required() {
			if row.Action == "" {
				require.Contains(t, input["required"], mcp.Snake(name), row.Tool)
				continue
			}
			require.Regexp(t, `(?m)^`+row.Action+`: .* Needs [^.]*\b`+mcp.Snake(name)+`\b`, actionOf(input)["description"], row.Tool)
		}
		if row.Action != "" {
			require.Contains(t, actionOf(input)["enum"], row.Action)
		}
	}
	require.Greater(t, checked, 200, "limits that were compared")
}

func TestTheInputSchemaSaysWhichArgumentsBelongTogether(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	tools := newAgent(t, app, app.Tenant(t).Key).everyTool(t)
	revenue := object{"mrr_cents": []any{"currency"}, "currency": []any{"mrr_cents"}}
	voter := object{"create_contact": []any{"external_user_id"}}
	for name, pairs := range map[string]object{
		"create_contact": revenue, "identify_contact": revenue, "update_contact": revenue, "vote_post": voter, "manage_comment": voter,
	} {
		require.Equal(t, pairs, tools[name].InputSchema.(object)["dependentRequired"], name)
	}
}

func actionOf(input object) object { return input["properties"].(object)["action"].(object) }

// described reports whether an argument has a description, by itself or in its variants or members.
func described(argument object) bool {
	words, _ := argument["description"].(string)
	variants, _ := argument["anyOf"].([]any)
	inner, _ := argument["properties"].(object)
	return words != "" ||
		len(variants) > 0 && !slices.ContainsFunc(variants, func(v any) bool { return !described(v.(object)) }) ||
		len(inner) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(inner)), func(v any) bool { return !described(v.(object)) })
}

// difference returns the first limit in which an argument differs from the contract, and the number
// of compared limits. If several actions limit an argument differently, one variant has to match.
func difference(t *testing.T, s *openapi3.Schema, got object) (found string, compared int) {
	t.Helper()
	if variants, ok := got["anyOf"].([]any); ok && len(s.OneOf) == 0 {
		for _, v := range variants {
			if found, compared = difference(t, s, v.(object)); found == "" {
				return "", compared
			}
		}
		return found, compared
	}
	var stated object
	raw, err := s.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &stated))
	for _, keyword := range limits {
		if stated[keyword] != nil {
			compared++
		}
		if !reflect.DeepEqual(stated[keyword], got[keyword]) {
			return fmt.Sprintf("%s is %v, not %v", keyword, got[keyword], stated[keyword]), compared
		}
	}
	if s.Items != nil {
		found, n := difference(t, s.Items.Value, got["items"].(object))
		if compared += n; found != "" {
			return "items: " + found, compared
		}
	}
	for name, p := range s.Properties {
		found, n := difference(t, p.Value, got["properties"].(object)[mcp.Snake(name)].(object))
		if compared += n; found != "" {
			return name + ": " + found, compared
		}
	}
	return "", compared
}

func TestEveryAnswerHasTheShapeThatItsToolAnnounces(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	all := operations(t)
	for name, tool := range newAgent(t, app, app.Tenant(t).Key).everyTool(t) {
		output := tool.OutputSchema.(object)["properties"].(object)
		require.Contains(t, output, "data", name)
		require.Contains(t, output, "error", name)
		text := indented(t, tool.OutputSchema)
		require.NotContains(t, text, "$ref", name)
		for _, row := range mcp.Table() {
			if row.Tool != name {
				continue
			}
			for status, r := range all[row.Operation].Responses.Map() {
				if media := r.Value.Content.Get("application/json"); status[0] == '2' && media != nil {
					for member := range members(members(media.Schema.Value)["data"]) {
						require.Contains(t, text, strconv.Quote(mcp.Snake(member)), "%s %s", name, row.Operation)
					}
				}
			}
		}
	}
}
