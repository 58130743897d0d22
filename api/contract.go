package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-faster/errors"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"earshot/internal/problem"
)

//go:embed openapi.yaml
var contractYAML []byte

// contract is what the server takes from api/openapi.yaml when it starts: the
// document to show, and of each operation the scope and the body's schema.
type contract struct {
	json       []byte
	operations map[string]operation // by method and Gin path
}

type operation struct {
	scope string
	body  *jsonschema.Schema
	// notNull are the body's members that may be left out but not be null, a
	// difference that decoding loses.
	notNull []string
}

func loadContract() (*contract, error) {
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
	if err := compiler.AddResource("contract.json", tree); err != nil {
		return nil, errors.Wrap(err, "read the contract")
	}
	c := &contract{json: text, operations: map[string]operation{}}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			op, err := readOperation(compiler, o)
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

func readOperation(compiler *jsonschema.Compiler, o *openapi3.Operation) (op operation, err error) {
	if o.Security != nil && len(*o.Security) > 0 {
		for _, scopes := range (*o.Security)[0] {
			op.scope = strings.Join(scopes, " ")
		}
	}
	if o.RequestBody == nil {
		return op, nil
	}
	media := o.RequestBody.Value.Content.Get("application/json")
	if op.body, err = compiler.Compile("contract.json" + media.Schema.Ref); err != nil {
		return op, errors.Wrap(err, "compile the body's schema")
	}
	op.notNull = notNull(media.Schema)
	return op, nil
}

// notNull are the members of an object that don't take null.
func notNull(s *openapi3.SchemaRef) []string {
	var names []string
	for name, p := range s.Value.Properties {
		if types := p.Value.Type; types != nil && len(*types) > 0 && !types.Includes("null") {
			names = append(names, name)
		}
	}
	for _, part := range s.Value.AllOf {
		names = append(names, notNull(part)...)
	}
	return names
}

// failures are everything that the contract says is wrong with a body.
func (o operation) failures(body []byte) problem.Fields {
	var bad problem.Fields
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		bad.Add("", "json", "the body is not JSON")
		return bad
	}
	var invalid *jsonschema.ValidationError
	if errors.As(o.body.Validate(value), &invalid) {
		collect(&bad, invalid)
	}
	return bad
}

var printer = message.NewPrinter(language.English)

// collect flattens the tree of causes into a list of members.
func collect(bad *problem.Fields, e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		collect(bad, cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	at := strings.Join(e.InstanceLocation, ".")
	if missing, ok := e.ErrorKind.(*kind.Required); ok {
		for _, name := range missing.Missing {
			bad.Add(strings.TrimPrefix(at+"."+name, "."), "required", "is required")
		}
		return
	}
	path := e.ErrorKind.KeywordPath()
	rule := "schema"
	if len(path) > 0 {
		rule = path[0]
	}
	bad.Add(at, rule, "%s", e.ErrorKind.LocalizedString(printer))
}

// hasNull reports whether a member that may not be null is.
func (o operation) hasNull(body []byte) bool {
	if !bytes.Contains(body, []byte("null")) {
		return false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return false
	}
	for _, name := range o.notNull {
		if string(members[name]) == "null" {
			return true
		}
	}
	return false
}
