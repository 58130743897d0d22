package main

import (
	"os"
	"slices"
	"strings"

	"github.com/go-faster/errors"
	"go.yaml.in/yaml/v3"
)

// openEnums lists the schemas and members of the contract with `x-open: true`, in the order of their names.
func openEnums(contract string) (string, error) {
	raw, err := os.ReadFile(contract)
	if err != nil {
		return "", err
	}
	var doc struct {
		Components struct {
			Schemas map[string]*schema `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return "", err
	}
	var names []string
	for name, s := range doc.Components.Schemas {
		names = append(names, s.open(strings.TrimSuffix(name, "Fields"))...) // WebhookFields are those of each Webhook
	}
	if len(names) == 0 {
		return "", errors.New("nothing has x-open")
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + ".\n", nil
}

type schema struct {
	Open       bool               `yaml:"x-open"`
	Properties map[string]*schema `yaml:"properties"`
	Items      *schema            `yaml:"items"`
	AllOf      []*schema          `yaml:"allOf"`
}

// open returns the names of the open enums in a schema.
func (s *schema) open(name string) (names []string) {
	if s == nil {
		return nil
	}
	if s.Open {
		names = append(names, "`"+name+"`")
	}
	for member, of := range s.Properties {
		names = append(names, of.open(name+"."+member)...)
	}
	for _, part := range append(s.AllOf, s.Items) {
		names = append(names, part.open(name)...)
	}
	return names
}
