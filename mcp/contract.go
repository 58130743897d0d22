package mcp

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// contract is the API's as the tools see it: its operations, with their schemas in
// the tools' names.
type contract struct {
	*openapi3.T
	operations map[string]*operation // by operationId
	// names are the contract's names that the tools write otherwise.
	names map[string]bool
}

// operation is one of the contract's.
type operation struct {
	method, path, summary string
	parameters            []parameter
	// body and answer know the names in the request's body and in the answer; body
	// is nil without one.
	body, answer *shape
	// input and output are schemas: of parameters and body together, and of the
	// answer.
	input, output *openapi3.Schema
	// creates says that the answer's status tells whether something was made or
	// was there already.
	creates bool
	// tagged says that the answer has an ETag.
	tagged  bool
	example map[string]any
}

// parameter stands in the path, in the query or in a header.
type parameter struct {
	name string // the contract's
	in   string // as the contract calls the place
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

// Lists in a query have commas between their items; in arguments they are lists.
var commas = regexp.MustCompile(", separated by commas(: `[^`]*`)?")

// readRequest fills in what a request takes.
func (c *contract) readRequest(op *operation, o *openapi3.Operation) {
	op.input = openapi3.NewObjectSchema()
	for _, ref := range o.Parameters {
		if ref.Value.Name == "If-None-Match" { // a tool answers what it read
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
		op.body = shapeOf(media.Schema)
		merge(op.input, c.schema(media.Schema).Value)
		op.addExample(media)
	}
	slices.Sort(op.input.Required)
}

// addExample takes the contract's example of a body; of several the one that shows
// most.
func (o *operation) addExample(media *openapi3.MediaType) {
	longest, _ := json.Marshal(media.Example) // what was read from YAML
	for _, one := range media.Examples {
		raw, _ := json.Marshal(one.Value.Value)
		if len(raw) > len(longest) || len(raw) == len(longest) && string(raw) < string(longest) {
			longest = raw
		}
	}
	_ = json.Unmarshal(o.body.outward(longest), &o.example)
}

// readAnswers fills in what the operation answers where it succeeds.
func (c *contract) readAnswers(op *operation, responses map[string]*openapi3.ResponseRef) {
	op.creates = responses["201"] != nil && responses["200"] != nil
	for status, r := range responses {
		if media := r.Value.Content.Get("application/json"); media != nil && strings.HasPrefix(status, "2") {
			op.output, op.answer = c.schema(media.Schema).Value, shapeOf(media.Schema)
			op.tagged = r.Value.Headers["ETag"] != nil
		}
	}
}
