package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
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
	doc        *openapi3.T
	json       []byte
	operations map[string]operation // by method and Gin path
}

type operation struct {
	scope   string
	body    *jsonschema.Schema
	members members
	// silent are the required members whose empty value is a good one, and that
	// decode to the same where they are missing: lists and moments.
	silent []string
}

// members are the names in an object of the contract, with those of the object
// that each holds.
type members map[string]members

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
	// The library's own stops at 254 characters, the specification at 320. What
	// the domain makes of an address it says itself.
	compiler.RegisterFormat(&jsonschema.Format{Name: "email", Validate: func(any) error { return nil }})
	if err := compiler.AddResource("contract.json", tree); err != nil {
		return nil, errors.Wrap(err, "read the contract")
	}
	c := &contract{doc: doc, json: text, operations: map[string]operation{}}
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
	op.members = membersOf(media.Schema)
	for _, name := range media.Schema.Value.Required {
		p, ok := media.Schema.Value.Properties[name]
		if ok && (p.Value.Type.Is("array") && p.Value.MinItems == 0 || p.Value.Format == "date-time") {
			op.silent = append(op.silent, name)
		}
	}
	return op, nil
}

func membersOf(s *openapi3.SchemaRef) members {
	m := members{}
	for name, p := range s.Value.Properties {
		m[name] = membersOf(p)
	}
	for _, part := range s.Value.AllOf {
		maps.Copy(m, membersOf(part))
	}
	return m
}

// exact leaves out the members that the decoder would take for one of the
// contract's although they are spelt otherwise, such as Name for name: those
// are unknown, and unknown ones are ignored. Mostly that's the body as it is.
func (m members) exact(body []byte) []byte {
	if len(m) == 0 {
		return body
	}
	object, changed, err := membersIn(body)
	if err != nil {
		return body
	}
	for name, value := range object {
		inner, known := m[name]
		if known {
			object[name] = inner.exact(value)
			changed = changed || !bytes.Equal(object[name], value)
		} else if m.misspelt(name) {
			delete(object, name)
			changed = true
		}
	}
	if !changed {
		return body
	}
	// What was decoded a moment ago can be encoded.
	body, _ = json.Marshal(object)
	return body
}

// membersIn reads an object. Repeated says that a name stands in it twice: the
// decoder would mix the two, and the last one counts.
func membersIn(body []byte) (object map[string]json.RawMessage, repeated bool, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false, errors.New("not an object")
	}
	object = map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false, errors.Wrap(err, "read a name")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false, errors.Wrap(err, "read a value")
		}
		_, known := object[name.(string)]
		object[name.(string)], repeated = value, repeated || known
	}
	return object, repeated, nil
}

func (m members) misspelt(name string) bool {
	for known := range m {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}

// nameIn is the member that the decoder names with the Go structs it is
// embedded in: ContactTraits.mrrCents.
func (m members) nameIn(path string) string {
	for rest := path; rest != ""; {
		head, tail, _ := strings.Cut(rest, ".")
		if _, known := m[head]; known {
			return rest
		}
		rest = tail
	}
	return path
}

// failures are everything that the contract says is wrong with a body.
func (o operation) failures(body []byte) problem.Fields {
	var bad problem.Fields
	if invalid := o.validate(body); invalid != nil {
		collect(&bad, invalid)
	}
	return bad
}

// validate wants a body that is JSON.
func (o operation) validate(body []byte) *jsonschema.ValidationError {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	errors.As(o.body.Validate(short(value)), &invalid)
	return invalid
}

// short puts a fraction in the place of each number that is too long for any
// integer of the contract. To see whether a number is one, the library works it
// out digit by digit, which takes seconds for 1e9999999.
func short(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			value[name] = short(member)
		}
	case []any:
		for i, item := range value {
			value[i] = short(item)
		}
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(value.String()), "e")
		if len(value) > maxNumber || len(exponent) > maxExponent {
			return json.Number("0.5")
		}
	}
	return value
}

const (
	// Characters of a number and of its exponent, with which any 64-bit integer
	// can be written in some way that somebody may want.
	maxNumber, maxExponent = 40, 3
)

// lacks reports whether a member is missing, which decoding can't tell from an
// empty one.
func (o operation) lacks(body []byte) bool {
	if o.silent == nil {
		return false
	}
	given := map[string]json.RawMessage{}
	_ = json.Unmarshal(body, &given) // an object, as checkJSON saw
	return slices.ContainsFunc(o.silent, func(name string) bool { return given[name] == nil })
}

// refusesNull reports whether something is null that may be left out but not be
// null, a difference that decoding loses.
func (o operation) refusesNull(body []byte) bool {
	invalid := o.validate(body)
	return invalid != nil && hasNull(invalid)
}

func hasNull(e *jsonschema.ValidationError) bool {
	wrong, ok := e.ErrorKind.(*kind.Type)
	return (ok && wrong.Got == "null") || slices.ContainsFunc(e.Causes, hasNull)
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
	at := fieldName(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			bad.Add(strings.TrimPrefix(at+"."+name, "."), "required", "is required")
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			bad.Add(strings.TrimPrefix(at+"."+name, "."), "dependentRequired", "is required together with %s", k.Prop)
		}
	default:
		rule := "schema"
		if path := k.KeywordPath(); len(path) > 0 {
			rule = path[0]
		}
		bad.Add(at, rule, "%s", k.LocalizedString(printer))
	}
}

// fieldName writes where a value stands as the domain does: body.text, events[1].
func fieldName(location []string) string {
	var name strings.Builder
	for _, part := range location {
		_, err := strconv.Atoi(part)
		switch {
		case err == nil:
			name.WriteString("[" + part + "]")
		case name.Len() > 0:
			name.WriteString("." + part)
		default:
			name.WriteString(part)
		}
	}
	return name.String()
}
