package mcp

import (
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Schemas come from the contract, which is the only place that states a limit. References are
// resolved, because few agents follow them, and names become the tools' names.

// schema converts a schema of the contract for the tools.
func (c *contract) schema(of *openapi3.SchemaRef) *openapi3.SchemaRef {
	return copied(of, func(s *openapi3.Schema) {
		s.Extensions, s.Example, s.Examples = nil, nil, nil
		s.Description = c.prose(strings.TrimSpace(s.Description))
		properties := openapi3.Schemas{}
		for name, p := range s.Properties {
			properties[Snake(name)] = p
		}
		s.Properties, s.Required = properties, snakes(s.Required)
		pairs := map[string][]string{}
		for name, needs := range s.DependentRequired {
			pairs[Snake(name)] = snakes(needs)
		}
		s.DependentRequired = pairs
		s.AnyOf, s.OneOf = s.OneOf, nil
		for _, part := range s.AllOf {
			merge(s, part.Value)
			if s.Description == "" {
				s.Description = part.Value.Description
			}
		}
		s.AllOf = nil
		if open := s.UnevaluatedProperties.Has; open != nil && !*open {
			// The parts are one object now, and every draft of JSON Schema supports this keyword.
			s.AdditionalProperties, s.UnevaluatedProperties = s.UnevaluatedProperties, openapi3.BoolSchema{}
		}
	})
}

// copied returns a schema without references. It applies change at each level, from the inside out.
func copied(of *openapi3.SchemaRef, change func(*openapi3.Schema)) *openapi3.SchemaRef {
	if of == nil {
		return nil
	}
	all := func(parts openapi3.SchemaRefs) (copies openapi3.SchemaRefs) {
		for _, part := range parts {
			copies = append(copies, copied(part, change))
		}
		return copies
	}
	s := *of.Value
	s.Properties = openapi3.Schemas{}
	for name, p := range of.Value.Properties {
		s.Properties[name] = copied(p, change)
	}
	s.Items, s.AdditionalProperties.Schema = copied(s.Items, change), copied(s.AdditionalProperties.Schema, change)
	s.OneOf, s.AllOf = all(s.OneOf), all(s.AllOf)
	change(&s)
	return s.NewRef()
}

// merge adds the members of another object's schema. Parts of the contract's objects have nothing
// else.
func merge(into, part *openapi3.Schema) {
	maps.Copy(into.Properties, part.Properties)
	into.Required = append(into.Required, part.Required...)
	slices.Sort(into.Required)
	if into.DependentRequired == nil {
		into.DependentRequired = map[string][]string{}
	}
	maps.Copy(into.DependentRequired, part.DependentRequired)
}

func snakes(names []string) (all []string) {
	for _, name := range names {
		all = append(all, Snake(name))
	}
	return all
}
