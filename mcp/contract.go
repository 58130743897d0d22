package mcp

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"

	"github.com/go-faster/errors"
)

// contract is api/openapi.yaml as the tools see it: its operations, with their
// schemas in the tools' names.
type contract struct {
	root       object
	operations map[string]*operation // by operationId
	// names are all of the contract's names that the tools write otherwise.
	names map[string]bool
}

type object = map[string]any

// operation is one of the contract's.
type operation struct {
	id, method, path, summary string
	parameters                []parameter
	// body and answer know the names in the request's body and in the answer; body
	// is nil without one.
	body, answer *shape
	// input and output are schemas: of parameters and body together, and of the
	// answer.
	input, output object
	// creates says that the answer's status tells whether something was made or
	// was there already.
	creates bool
	example object
}

// parameter stands in the path or in the query.
type parameter struct {
	name   string // the contract's
	inPath bool
	list   bool
}

// writes reports whether the operation changes anything.
func (o *operation) writes() bool { return o.method != "GET" }

func readContract(document []byte) (*contract, error) {
	c := &contract{operations: map[string]*operation{}, names: map[string]bool{}}
	if err := json.Unmarshal(document, &c.root); err != nil {
		return nil, errors.Wrap(err, "read the contract")
	}
	c.gatherNames(c.root)
	for path, item := range at(c.root, "paths") {
		for method, o := range item.(object) {
			o := o.(object)
			op := &operation{
				id: o["operationId"].(string), method: strings.ToUpper(method), path: path,
				summary: text(o["summary"]),
			}
			c.operations[op.id] = op
			c.readRequest(op, o)
			c.readAnswers(op, at(o, "responses"))
		}
	}
	return c, nil
}

// gatherNames finds the names of members and of parameters.
func (c *contract) gatherNames(v any) {
	switch v := v.(type) {
	case object:
		for name := range at(v, "properties") {
			c.names[name] = c.names[name] || snake(name) != name
		}
		if name, ok := v["name"].(string); ok && v["in"] != nil && v["in"] != "header" {
			c.names[name] = snake(name) != name
		}
		for _, inner := range v {
			c.gatherNames(inner)
		}
	case []any:
		for _, inner := range v {
			c.gatherNames(inner)
		}
	}
}

// Lists in a query have commas between their items; in arguments they are lists.
var commas = regexp.MustCompile(", separated by commas(: `[^`]*`)?")

// readRequest fills in what a request takes.
func (c *contract) readRequest(op *operation, o object) {
	properties, required := object{}, []string{}
	op.example = object{}
	for _, ref := range list(o["parameters"]) {
		p := c.target(ref.(object))
		name := p["name"].(string)
		schema := c.schema(p["schema"])
		op.parameters = append(op.parameters, parameter{name, p["in"] == "path", schema["type"] == "array"})
		if d := text(p["description"]); d != "" {
			schema["description"] = c.prose(commas.ReplaceAllString(strings.TrimSpace(d), ""))
		}
		properties[snake(name)] = schema
		if p["required"] == true {
			required = append(required, snake(name))
			op.example[snake(name)] = p["example"]
		}
	}
	op.input = object{"type": "object", "properties": properties}
	if body, ok := o["requestBody"].(object); ok {
		media := at(body, "content", "application/json")
		schema := c.schema(media["schema"])
		op.body = c.shapeOf(media["schema"])
		maps.Copy(properties, at(schema, "properties"))
		required = append(required, texts(schema["required"])...)
		if pairs, ok := schema["dependentRequired"]; ok {
			op.input["dependentRequired"] = pairs
		}
		c.addExample(op, media)
	}
	require(op.input, required)
}

// addExample takes the contract's example of a body; of several the one that shows
// most.
func (c *contract) addExample(op *operation, media object) {
	longest, _ := json.Marshal(media["example"]) // what was read from JSON
	for _, one := range at(media, "examples") {
		raw, _ := json.Marshal(one.(object)["value"])
		if len(raw) > len(longest) || len(raw) == len(longest) && string(raw) < string(longest) {
			longest = raw
		}
	}
	_ = json.Unmarshal(op.body.outward(longest), &op.example)
}

// readAnswers fills in what the operation answers where it succeeds.
func (c *contract) readAnswers(op *operation, responses object) {
	_, made := responses["201"]
	_, there := responses["200"]
	op.creates = made && there
	for status := range responses {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		if schema := at(responses, status, "content", "application/json")["schema"]; schema != nil {
			op.output, op.answer = c.schema(schema), c.shapeOf(schema)
		}
	}
}
