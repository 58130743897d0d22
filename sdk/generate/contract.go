package main

import (
	"os"
	"slices"

	"github.com/go-faster/errors"
	"go.yaml.in/yaml/v3"
)

// document is the part of api/openapi.yaml that the SDKs use, in the order of the file.
type document struct {
	Info struct {
		Version string `yaml:"version"`
	} `yaml:"info"`
	Paths    ordered[ordered[*rawOperation]] `yaml:"paths"`
	Webhooks ordered[map[string]struct {
		Summary     string  `yaml:"summary"`
		RequestBody rawBody `yaml:"requestBody"`
	}] `yaml:"webhooks"`
	Components struct {
		Parameters ordered[*rawParameter] `yaml:"parameters"`
		Schemas    ordered[*rawSchema]    `yaml:"schemas"`
	} `yaml:"components"`
}

type rawOperation struct {
	ID          string                `yaml:"operationId"`
	Tags        []string              `yaml:"tags"`
	Summary     string                `yaml:"summary"`
	Description string                `yaml:"description"`
	Deprecated  bool                  `yaml:"deprecated"`
	Parameters  []*rawParameter       `yaml:"parameters"`
	RequestBody *rawBody              `yaml:"requestBody"`
	Responses   ordered[*rawResponse] `yaml:"responses"`
}

type rawParameter struct {
	Ref         string     `yaml:"$ref"`
	Name        string     `yaml:"name"`
	In          string     `yaml:"in"`
	Required    bool       `yaml:"required"`
	Description string     `yaml:"description"`
	Explode     *bool      `yaml:"explode"`
	Schema      *rawSchema `yaml:"schema"`
}

type rawBody struct {
	Required bool                  `yaml:"required"`
	Content  map[string]rawContent `yaml:"content"`
}

type rawContent struct {
	Schema *rawSchema `yaml:"schema"`
}

type rawResponse struct {
	Ref     string                `yaml:"$ref"`
	Content map[string]rawContent `yaml:"content"`
}

type rawSchema struct {
	Ref         string              `yaml:"$ref"`
	Type        types               `yaml:"type"`
	Format      string              `yaml:"format"`
	Description string              `yaml:"description"`
	Enum        []string            `yaml:"enum"`
	OpenEnum    []string            `yaml:"x-extensible-enum"`
	Const       string              `yaml:"const"`
	Required    []string            `yaml:"required"`
	Properties  ordered[*rawSchema] `yaml:"properties"`
	Items       *rawSchema          `yaml:"items"`
	// Others is additionalProperties: a schema, or whether other members are allowed.
	Others yaml.Node    `yaml:"additionalProperties"`
	AllOf  []*rawSchema `yaml:"allOf"`
	OneOf  []*rawSchema `yaml:"oneOf"`
}

// types is one type or several.
type types []string

func (t *types) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = types{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

// base is the type without null, "" if there are several.
func (t types) base() string {
	rest := slices.DeleteFunc(slices.Clone(t), func(one string) bool { return one == "null" })
	if len(rest) != 1 {
		return ""
	}
	return rest[0]
}

// ordered is a mapping that keeps the order of its keys.
type ordered[V any] struct {
	keys   []string
	values map[string]V
}

func (o *ordered[V]) UnmarshalYAML(n *yaml.Node) error {
	o.values = map[string]V{}
	for i := 0; i < len(n.Content); i += 2 {
		var v V
		if err := n.Content[i+1].Decode(&v); err != nil {
			return errors.Wrap(err, n.Content[i].Value)
		}
		o.keys = append(o.keys, n.Content[i].Value)
		o.values[n.Content[i].Value] = v
	}
	return nil
}

func read(path string) (*document, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "read the contract")
	}
	var d document
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return nil, errors.Wrap(err, "decode the contract")
	}
	return &d, nil
}
