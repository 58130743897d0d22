package mcp

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// contract is the API's contract for the tools: its operations, with schemas in the tools' names.
type contract struct {
	*openapi3.T
	operations map[string]*operation // by operationId
	// names are true for the contract's names that the tools spell differently.
	names map[string]bool
}

// operation is an operation of the contract.
type operation struct {
	method, path, summary string
	parameters            []parameter
	// body and answer are the shapes of the request's body and of the answer. body is nil without a
	// body.
	body, answer *naming
	// input is the schema of parameters and body together. output is the schema of the answer.
	input, output *openapi3.Schema
	// creates is true if the status distinguishes a new resource from an existing one.
	creates bool
	// tagged is true if the answer has an ETag.
	tagged  bool
	example map[string]any
}

// parameter is a parameter in the path, the query or a header.
type parameter struct {
	name string // as in the contract
	in   string // path, query or header
	list bool
}

// writes reports whether the operation changes anything.
func (o *operation) writes() bool { return o.method != "GET" }

func newContract(doc *openapi3.T) *contract {
	c := &contract{T: doc, operations: map[string]*operation{}, names: map[string]bool{}}
	_ = doc.WalkSchemas(func(_ string, of *openapi3.SchemaRef) error {
		for name := range of.Value.Properties {
			c.names[name] = Snake(name) != name
		}
		return nil
	})
	for _, p := range doc.Components.Parameters {
		c.names[p.Value.Name] = Snake(p.Value.Name) != p.Value.Name
	}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			op := &operation{method: method, path: path, summary: o.Summary, example: map[string]any{}}
			c.operations[o.OperationID] = op
			c.readRequest(op, o)
			c.readAnswers(op, o.Responses.Map())
		}
	}
	return c
}

// Lists in a query have commas between their items. As arguments they are JSON lists.
var commas = regexp.MustCompile(", separated by commas(: `[^`]*`)?")

// readRequest reads the parameters and the body of an operation.
func (c *contract) readRequest(op *operation, o *openapi3.Operation) {
	op.input = openapi3.NewObjectSchema()
	for _, ref := range o.Parameters {
		if ref.Value.Name == "If-None-Match" { // a tool always returns the content
			continue
		}
		p, name, schema := ref.Value, Snake(ref.Value.Name), c.schema(ref.Value.Schema)
		op.parameters = append(op.parameters, parameter{p.Name, p.In, schema.Value.Type.Is("array")})
		if p.Description != "" {
			schema.Value.Description = c.prose(commas.ReplaceAllString(strings.TrimSpace(p.Description), ""))
		}
		op.input.Properties[name] = schema
		if p.Required {
			op.input.Required = append(op.input.Required, name)
			op.example[name] = p.Example
		}
	}
	if o.RequestBody != nil {
		media := o.RequestBody.Value.Content.Get("application/json")
		op.body = namingOf(media.Schema)
		merge(op.input, c.schema(media.Schema).Value)
		op.addExample(media)
	}
	slices.Sort(op.input.Required)
}

// addExample takes the contract's example of a body, or the longest of several.
func (o *operation) addExample(media *openapi3.MediaType) {
	longest, _ := json.Marshal(media.Example) // never fails: it was read from YAML
	for _, one := range media.Examples {
		raw, _ := json.Marshal(one.Value.Value)
		if len(raw) > len(longest) || len(raw) == len(longest) && string(raw) < string(longest) {
			longest = raw
		}
	}
	_ = json.Unmarshal(o.body.outward(longest), &o.example)
}

// readAnswers reads the successful answers of an operation.
func (c *contract) readAnswers(op *operation, responses map[string]*openapi3.ResponseRef) {
	op.creates = responses["201"] != nil && responses["200"] != nil
	for status, r := range responses {
		if media := r.Value.Content.Get("application/json"); media != nil && strings.HasPrefix(status, "2") {
			op.output, op.answer = c.schema(media.Schema).Value, namingOf(media.Schema)
			op.tagged = r.Value.Headers["ETag"] != nil
		}
	}
}
