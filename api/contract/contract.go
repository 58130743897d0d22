// Package contract is api/openapi.yaml as the server goes by it: the document to show, and what the
// requests of each operation may hold.
package contract

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-faster/errors"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The headers of requests and answers that the contract has.
const (
	IdempotencyKeyHeader = "Idempotency-Key"
	IfMatchHeader        = "If-Match"
	ETagHeader           = "ETag"
)

// Contract is what the server takes from the document when it starts. Nobody changes it.
type Contract struct {
	Doc *openapi3.T
	// JSON is the document as it is shown.
	JSON []byte
	// Operations are by method and Gin path.
	Operations map[string]Operation
}

// Operation is an operation with its scope and with what its requests may hold.
type Operation struct {
	ID    string
	Scope string
	// Body is nil for an operation without one; Query is by the parameter's name.
	Body *Input
	// Bodiless says that a request may come without one.
	Bodiless bool
	Query    map[string]*Input
	// Alone is the body's list whose items are judged one by one; "" is none.
	Alone string
	// Keyed says that it takes an Idempotency-Key.
	Keyed bool
	// Conditional says that it takes an If-Match, Tagged that it answers with an ETag.
	Conditional, Tagged bool
}

// Input is a body or a parameter: how it is read, and the schema that judges it.
type Input struct {
	*shape
	schema *jsonschema.Schema
}

// Read reads the document. It takes longer than most tests that start a server.
func Read(yaml []byte) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(yaml)
	if err != nil {
		return nil, errors.Wrap(err, "load the contract")
	}
	text, err := doc.MarshalJSON()
	if err != nil {
		return nil, errors.Wrap(err, "encode the contract")
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, errors.Wrap(err, "read the contract")
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: validMoment})
	// The library's own stops at 254 characters, the specification at 320. What
	// the domain makes of an address it says itself.
	compiler.RegisterFormat(&jsonschema.Format{Name: "email", Validate: func(any) error { return nil }})
	if err := compiler.AddResource("contract.json", tree); err != nil {
		return nil, errors.Wrap(err, "read the contract")
	}
	c := &Contract{Doc: doc, JSON: text, Operations: map[string]Operation{}}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			op, err := readOperation(compiler, o, path, method)
			if err != nil {
				return nil, errors.Wrap(err, o.OperationID)
			}
			c.Operations[method+" "+ginPath(path)] = op
		}
	}
	return c, nil
}

// ginPath writes {id} as :id.
func ginPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

// placeOf is where the contract has a parameter, the nth of an operation.
func placeOf(p *openapi3.ParameterRef, path, method string, n int) string {
	if p.Ref != "" {
		return p.Ref
	}
	return fmt.Sprintf("#/paths/%s/%s/parameters/%d", strings.ReplaceAll(path, "/", "~1"), strings.ToLower(method), n)
}

func readOperation(compiler *jsonschema.Compiler, o *openapi3.Operation, path, method string) (Operation, error) {
	op := Operation{ID: o.OperationID, Query: map[string]*Input{}}
	if o.Security != nil && len(*o.Security) > 0 {
		for _, scopes := range (*o.Security)[0] {
			op.Scope = strings.Join(scopes, " ")
		}
	}
	for i, p := range o.Parameters {
		op.Keyed = op.Keyed || p.Value.Name == IdempotencyKeyHeader
		op.Conditional = op.Conditional || p.Value.Name == IfMatchHeader
		if p.Value.In != openapi3.ParameterInQuery {
			continue
		}
		schema, err := compiler.Compile("contract.json" + placeOf(p, path, method, i) + "/schema")
		if err != nil {
			return op, errors.Wrap(err, "compile a parameter's schema")
		}
		op.Query[p.Value.Name] = &Input{shapeOf(p.Value.Schema.Value), schema}
	}
	for _, r := range o.Responses.Map() {
		op.Tagged = op.Tagged || r.Value.Headers[ETagHeader] != nil
	}
	if o.RequestBody == nil {
		return op, nil
	}
	media := o.RequestBody.Value.Content.Get("application/json")
	schema, err := compiler.Compile("contract.json" + media.Schema.Ref)
	if err != nil {
		return op, errors.Wrap(err, "compile the body's schema")
	}
	op.Bodiless = !o.RequestBody.Value.Required
	op.Body = &Input{shapeOf(media.Schema.Value), schema}
	for name, p := range media.Schema.Value.Properties {
		if p.Value.Extensions["x-judged-alone"] == true {
			op.Alone = name
		}
	}
	return op, nil
}
