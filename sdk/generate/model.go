package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-faster/errors"
	"go.yaml.in/yaml/v3"
)

// API is the contract as the templates of all languages see it. Names are those of the contract,
// and each language converts them.
type API struct {
	Version   string
	Resources []*Resource
	// Objects and Enums are everything that operations and events refer to, in the order of their
	// names.
	Objects []*Object
	Enums   []*Enum
	// Events are the payloads that webhooks and the feed deliver.
	Events []*Event
}

// Resource groups related operations, such as those of posts.
type Resource struct {
	Name       string // lower camel case, in the plural where there are several
	Operations []*Operation
}

// Operation is one request.
type Operation struct {
	ID   string // the contract's operationId
	Name string // lower camel case, unique in its resource
	// Summary is one line, Description is Markdown.
	Summary, Description string
	Deprecated           bool
	Method               string // in capitals
	Path                 string // with {places} for PathParams
	PathParams           []Field
	Query                []Field
	// Body is nil if the request has none.
	Body         *Object
	BodyRequired bool
	// Result is the type of the answer's `data`. For a page it is the type of an item.
	Result Ref
	// Kind determines how an answer is read.
	Kind Kind
	// Keyed requests take an Idempotency-Key, Conditional ones an If-Match, and Tagged ones an
	// If-None-Match.
	Keyed, Conditional, Tagged bool
	// Page is the object of a page, with data and nextCursor, and optionally deleted and
	// syncCursor.
	Page *Object
}

// Kind is the kind of an answer.
type Kind string

// The kinds of answers.
const (
	Single Kind = "single" // one thing in `data`
	Paged  Kind = "paged"  // a list with nextCursor
	Feed   Kind = "feed"   // events with nextAfter
)

// Object is an object with members.
type Object struct {
	Name, Doc string
	Fields    []Field
	// Sent is true if users fill it in, Received if they read it. Both can be true.
	Sent, Received bool
}

// Field is a member or a parameter.
type Field struct {
	Name, Doc string
	Type      Ref
	Required  bool
	// Const is the only possible value, for example the name of an event.
	Const string
}

// Ref is the type of a value.
type Ref struct {
	// Type is string, integer, number, boolean, time, any, list, map, object, enum or event (the payload of any).
	Type     string
	Nullable bool
	Item     *Ref    // of a list or a map
	Object   *Object // of an object
	Enum     *Enum   // of an enum
}

// Enum has values. More values may be added, so no SDK fails on an unknown one.
type Enum struct {
	Name, Doc string
	Values    []string
}

// Event is one of the payloads, identified by its member `event`.
type Event struct {
	Name, Summary string
	Payload       *Object
}

type builder struct {
	doc     *document
	objects map[string]*Object
	enums   map[string]*Enum
}

// build makes the model. An unknown part of the contract is an error.
func build(d *document) (*API, error) {
	b := &builder{doc: d, objects: map[string]*Object{}, enums: map[string]*Enum{}}
	api := &API{Version: d.Info.Version}
	resources := map[string]*Resource{}
	seen := 0
	for _, path := range d.Paths.keys {
		item := d.Paths.values[path]
		for _, method := range item.keys {
			op, err := b.operation(strings.ToUpper(method), path, item.values[method])
			if err != nil {
				return nil, errors.Wrap(err, method+" "+path)
			}
			name := methods[op.ID].resource
			r := resources[name]
			if r == nil {
				r = &Resource{Name: name}
				resources[name] = r
				api.Resources = append(api.Resources, r)
			}
			r.Operations = append(r.Operations, op)
			seen++
		}
	}
	if seen != len(methods) {
		return nil, errors.New("a name in names.go belongs to no operation")
	}
	for _, name := range d.Webhooks.keys {
		post := d.Webhooks.values[name]["post"]
		ref, err := b.ref(post.RequestBody.Content["application/json"].Schema, "")
		if err != nil {
			return nil, errors.Wrap(err, name)
		}
		if ref.Object == nil {
			return nil, errors.New(name + " has no payload")
		}
		api.Events = append(api.Events, &Event{Name: name, Summary: post.Summary, Payload: ref.Object})
	}
	api.mark()
	for _, o := range b.objects {
		api.Objects = append(api.Objects, o)
	}
	for _, e := range b.enums {
		api.Enums = append(api.Enums, e)
	}
	slices.SortFunc(api.Objects, func(x, y *Object) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortFunc(api.Enums, func(x, y *Enum) int { return cmp.Compare(x.Name, y.Name) })
	return api, nil
}

func (b *builder) operation(method, path string, raw *rawOperation) (*Operation, error) {
	named, ok := methods[raw.ID]
	if !ok {
		return nil, errors.New("names.go has no name for " + raw.ID)
	}
	op := &Operation{
		ID: raw.ID, Name: named.method, Summary: raw.Summary, Description: strings.TrimSpace(raw.Description),
		Deprecated: raw.Deprecated, Method: method, Path: path,
	}
	for _, p := range raw.Parameters {
		if err := b.parameter(op, p); err != nil {
			return nil, err
		}
	}
	if body := raw.RequestBody; body != nil {
		ref, err := b.ref(body.Content["application/json"].Schema, "")
		if err != nil {
			return nil, errors.Wrap(err, "body")
		}
		if ref.Object == nil {
			return nil, errors.New("the body is no object")
		}
		op.Body, op.BodyRequired = ref.Object, body.Required
	}
	return op, b.answer(op, raw)
}

func (b *builder) parameter(op *Operation, p *rawParameter) error {
	if p.Ref != "" {
		p = b.doc.Components.Parameters.values[last(p.Ref)]
	}
	switch {
	case p.In == "header" && p.Name == "Idempotency-Key":
		op.Keyed = true
	case p.In == "header" && p.Name == "If-Match":
		op.Conditional = true
	case p.In == "header" && p.Name == "If-None-Match":
		op.Tagged = true
	case p.In == "path", p.In == "query":
		ref, err := b.ref(p.Schema, pascal(op.ID)+pascal(p.Name))
		if err != nil {
			return errors.Wrap(err, p.Name)
		}
		f := Field{Name: p.Name, Doc: strings.TrimSpace(p.Description), Type: ref, Required: p.Required}
		if p.In == "path" {
			op.PathParams = append(op.PathParams, f)
		} else {
			op.Query = append(op.Query, f)
		}
	default:
		return errors.New("a parameter that isn't known: " + p.Name)
	}
	return nil
}

// answer reads the successful answers, which must all have the same shape.
func (b *builder) answer(op *Operation, raw *rawOperation) error {
	var schema *rawSchema
	for _, status := range raw.Responses.keys {
		content := raw.Responses.values[status].Content
		if status >= "300" || content == nil {
			continue
		}
		this := content["application/json"].Schema
		if schema != nil && schema.Ref != this.Ref {
			return errors.New("two successes have different shapes")
		}
		schema = this
	}
	if schema == nil {
		return errors.New("there is no answer that succeeds")
	}
	ref, err := b.ref(schema, "")
	if err != nil {
		return errors.Wrap(err, "answer")
	}
	envelope := ref.Object
	data, ok := envelope.field("data")
	if !ok {
		return errors.New("the answer has no data")
	}
	op.Kind, op.Result = Single, data.Type
	_, cursor := envelope.field("nextCursor")
	_, after := envelope.field("nextAfter")
	switch {
	case cursor:
		op.Kind, op.Result, op.Page = Paged, *data.Type.Item, envelope
	case after:
		op.Kind, op.Result, op.Page = Feed, *data.Type.Item, envelope
	case len(envelope.Fields) > 1:
		return errors.New("the answer has more than data")
	default:
		delete(b.objects, envelope.Name)
	}
	return nil
}

// mark records for each object whether it is sent or received.
func (api *API) mark() {
	received := func(o *Object) *bool { return &o.Received }
	for _, r := range api.Resources {
		for _, op := range r.Operations {
			op.Body.mark(func(o *Object) *bool { return &o.Sent })
			op.Page.mark(received)
			op.Result.mark(received)
		}
	}
	for _, e := range api.Events {
		e.Payload.mark(received)
	}
}

func (o *Object) mark(as func(*Object) *bool) {
	if o == nil || *as(o) {
		return
	}
	*as(o) = true
	for _, f := range o.Fields {
		f.Type.mark(as)
	}
}

func (r Ref) mark(as func(*Object) *bool) {
	r.Object.mark(as)
	if r.Item != nil {
		r.Item.mark(as)
	}
}

func (o *Object) field(name string) (Field, bool) {
	i := slices.IndexFunc(o.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return o.Fields[i], true
}

// ref is the type of a schema. An object or an enum without its own name gets name.
func (b *builder) ref(s *rawSchema, name string) (Ref, error) {
	if s == nil {
		return Ref{}, errors.New("there is no schema")
	}
	if s.Ref != "" {
		name = last(s.Ref)
		target, ok := b.doc.Components.Schemas.values[name]
		if !ok {
			return Ref{}, errors.New("no schema " + name)
		}
		if name == "DeliveryPayload" {
			return Ref{Type: "event"}, nil
		}
		return b.ref(target, name)
	}
	if len(s.OneOf) > 0 {
		if len(s.OneOf) != 2 || !slices.Contains(s.OneOf[1].Type, "null") {
			return Ref{}, errors.New("a choice other than of one thing and null")
		}
		ref, err := b.ref(s.OneOf[0], name)
		ref.Nullable = true
		return ref, err
	}
	ref, err := b.plain(s, name)
	ref.Nullable = ref.Type != "any" && slices.Contains(s.Type, "null")
	return ref, err
}

func (b *builder) plain(s *rawSchema, name string) (Ref, error) {
	if len(s.Enum)+len(s.OpenEnum) > 0 {
		return Ref{Type: "enum", Enum: b.enum(s, name)}, nil
	}
	switch base := s.Type.base(); base {
	case "string":
		if s.Format == "date-time" {
			return Ref{Type: "time"}, nil
		}
		return Ref{Type: "string"}, nil
	case "integer", "number", "boolean":
		return Ref{Type: base}, nil
	case "array":
		item, err := b.ref(s.Items, name+"Item")
		return Ref{Type: "list", Item: &item}, err
	case "object":
		return b.objectOrMap(s, name)
	case "":
		return Ref{Type: "any"}, nil
	default:
		return Ref{}, errors.New("a type that isn't known: " + base)
	}
}

func (b *builder) enum(s *rawSchema, name string) *Enum {
	e := b.enums[name]
	if e == nil {
		e = &Enum{Name: name, Doc: strings.TrimSpace(s.Description), Values: slices.Concat(s.Enum, s.OpenEnum)}
		b.enums[name] = e
	}
	return e
}

func (b *builder) objectOrMap(s *rawSchema, name string) (Ref, error) {
	if len(s.Properties.keys) == 0 && len(s.AllOf) == 0 {
		item := Ref{Type: "any"}
		if s.Others.Kind == yaml.MappingNode {
			var of rawSchema
			if err := s.Others.Decode(&of); err != nil {
				return Ref{}, errors.Wrap(err, name)
			}
			var err error
			if item, err = b.ref(&of, name+"Value"); err != nil {
				return Ref{}, err
			}
		}
		return Ref{Type: "map", Item: &item}, nil
	}
	if name == "" {
		return Ref{}, errors.New("an object without a name")
	}
	if o := b.objects[name]; o != nil {
		return Ref{Type: "object", Object: o}, nil
	}
	o := &Object{Name: name, Doc: strings.TrimSpace(s.Description)}
	b.objects[name] = o
	return Ref{Type: "object", Object: o}, b.fields(o, s)
}

// fields adds the members to an object, those of allOf's parts first.
func (b *builder) fields(o *Object, s *rawSchema) error {
	for _, part := range s.AllOf {
		if part.Ref != "" {
			part = b.doc.Components.Schemas.values[last(part.Ref)]
		}
		if err := b.fields(o, part); err != nil {
			return err
		}
	}
	for _, name := range s.Properties.keys {
		member := s.Properties.values[name]
		ref, err := b.ref(member, o.Name+pascal(name))
		if err != nil {
			return errors.Wrap(err, o.Name+"."+name)
		}
		o.Fields = append(o.Fields, Field{
			Name: name, Doc: b.doc.describe(member), Type: ref, Required: slices.Contains(s.Required, name), Const: member.Const,
		})
	}
	return nil
}

// describe returns the description of a member, or else the description of its type.
func (d *document) describe(s *rawSchema) string {
	for ; s.Description == "" && s.Ref != ""; s = d.Components.Schemas.values[last(s.Ref)] {
	}
	return strings.TrimSpace(s.Description)
}

func last(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// pascal writes a name of the contract with a capital.
func pascal(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
