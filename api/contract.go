package api

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-faster/errors"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed openapi.yaml
var contractYAML []byte

// contract is what the server takes from api/openapi.yaml when it starts: the
// document to show, and of each operation the scope and what its requests may hold.
type contract struct {
	doc        *openapi3.T
	json       []byte
	operations map[string]operation // by method and Gin path
}

type operation struct {
	id    string
	scope string
	// body is nil for an operation without one; query is by the parameter's name.
	body *input
	// bodiless says that a request may come without one.
	bodiless bool
	query    map[string]*input
	// alone is the body's list whose items are judged one by one; "" is none.
	alone string
	// keyed says that it takes an Idempotency-Key.
	keyed bool
	// conditional says that it takes an If-Match, tagged that it answers with an ETag.
	conditional, tagged bool
}

// input is a body or a parameter: how it is read, and the schema that judges it.
type input struct {
	*shape
	schema *jsonschema.Schema
}

// loadContract reads it once for all servers of a process: nobody changes it, and
// reading takes longer than most tests that start a server.
var loadContract = sync.OnceValues(readContract)

func readContract() (*contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(contractYAML)
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
	c := &contract{doc: doc, json: text, operations: map[string]operation{}}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			op, err := readOperation(compiler, o, path, method)
			if err != nil {
				return nil, errors.Wrap(err, o.OperationID)
			}
			c.operations[method+" "+ginPath(path)] = op
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

func readOperation(compiler *jsonschema.Compiler, o *openapi3.Operation, path, method string) (operation, error) {
	op := operation{id: o.OperationID, query: map[string]*input{}}
	if o.Security != nil && len(*o.Security) > 0 {
		for _, scopes := range (*o.Security)[0] {
			op.scope = strings.Join(scopes, " ")
		}
	}
	for i, p := range o.Parameters {
		op.keyed = op.keyed || p.Value.Name == idempotencyKeyHeader
		op.conditional = op.conditional || p.Value.Name == ifMatchHeader
		if p.Value.In != openapi3.ParameterInQuery {
			continue
		}
		schema, err := compiler.Compile("contract.json" + placeOf(p, path, method, i) + "/schema")
		if err != nil {
			return op, errors.Wrap(err, "compile a parameter's schema")
		}
		op.query[p.Value.Name] = &input{shapeOf(p.Value.Schema.Value), schema}
	}
	for _, r := range o.Responses.Map() {
		op.tagged = op.tagged || r.Value.Headers[etagHeader] != nil
	}
	if o.RequestBody == nil {
		return op, nil
	}
	media := o.RequestBody.Value.Content.Get("application/json")
	schema, err := compiler.Compile("contract.json" + media.Schema.Ref)
	if err != nil {
		return op, errors.Wrap(err, "compile the body's schema")
	}
	op.bodiless = !o.RequestBody.Value.Required
	op.body = &input{shapeOf(media.Schema.Value), schema}
	for name, p := range media.Schema.Value.Properties {
		if p.Value.Extensions["x-judged-alone"] == true {
			op.alone = name
		}
	}
	return op, nil
}
