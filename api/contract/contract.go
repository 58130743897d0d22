// Package contract reads api/openapi.yaml for the server: the document to serve, and the rules for
// the requests of each operation.
package contract

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-faster/errors"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The headers that the contract defines.
const (
	IdempotencyKeyHeader = "Idempotency-Key"
	IfMatchHeader        = "If-Match"
	ETagHeader           = "ETag"
)

// Contract is the document in the form that the server uses. It is read once and never changes.
type Contract struct {
	Doc *openapi3.T
	// JSON is the document as the server serves it.
	JSON []byte
	// Operations has the operations by method and Gin path.
	Operations map[string]Operation
}

// Operation is an operation with its scope and the rules for its requests.
type Operation struct {
	ID    string
	Scope string
	// Body is nil for an operation that reads. Query is by the parameter's name.
	Body *Input
	// Bodiless is true if the body is optional.
	Bodiless bool
	Query    map[string]*Input
	// Alone is the name of the body's list whose items are validated separately, or empty.
	Alone string
	// Keyed is true if the operation takes an Idempotency-Key.
	Keyed bool
	// Conditional is true if it takes an If-Match. Tagged is true if an answer has an ETag.
	Conditional, Tagged bool
	// ReadOnly has the members of an edited resource that the edit cannot change, with the way to
	// change each. The edit accepts them with their current value.
	ReadOnly map[string]string
	// Kept has the members that the service keeps, for example counts and times. They may change
	// between the reading and the sending, so the edit ignores them.
	Kept map[string]bool
}

// Input is a body or a parameter: the shape in which it is read, and the schema that validates it.
type Input struct {
	*shape
	// schema is nil if there is nothing else to validate.
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
	// The library's own format allows 254 characters, the specification 320. The domain validates
	// addresses itself.
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
			if method == http.MethodPatch || method == http.MethodPut {
				op.readResource(o, item.Get)
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

// placeOf returns the contract's pointer to a parameter, the nth of an operation.
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
		if method != http.MethodGet {
			// A member of such a body was meant for the query, or for another operation.
			op.Body, op.Bodiless = &Input{shape: &shape{closed: true}}, true
		}
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

// readResource reads the members of the resource that an edit cannot change. The resource is in the
// answers of the edit and of the GET at the same path, if there is one.
func (o *Operation) readResource(operations ...*openapi3.Operation) {
	o.ReadOnly, o.Kept = map[string]string{}, map[string]bool{}
	kept, _ := operations[0].Extensions["x-kept"].([]any)
	ways, _ := operations[0].Extensions["x-read-only"].(map[string]any)
	for _, name := range kept {
		o.Kept[fmt.Sprint(name)] = true
	}
	for _, of := range operations {
		if of == nil {
			continue
		}
		answer := shapeOf(of.Responses.Value("200").Value.Content.Get("application/json").Schema.Value)
		for name := range answer.members["data"].members {
			if o.Body.members[name] == nil && !o.Kept[name] {
				way, _ := ways[name].(string)
				o.ReadOnly[name] = cmp.Or(way, "it never changes")
			}
		}
	}
}
