package main

import (
	"bytes"
	_ "embed"
	"go/format"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"github.com/go-faster/errors"
)

//go:embed golang.tmpl
var golangTemplate string

// golang writes the Go SDK's types and its resources with their methods.
func golang(api *API) (map[string][]byte, error) {
	t, err := template.New("go").Funcs(template.FuncMap{
		"name": goName, "local": goLocal, "typeName": goTypeName, "constant": goConstant,
		"comment": goComment, "sentence": goSentence, "describe": goDescribe,
		"member": goMember, "tag": goTag, "param": goParam, "result": goResult, "value": goValue,
		"answered": goAnswered, "payload": goPayload, "lower": goLowerFirst, "has": goHas,
	}).Parse(golangTemplate)
	if err != nil {
		return nil, errors.Wrap(err, "parse the template")
	}
	files := map[string][]byte{}
	for _, file := range []string{"types", "resources"} {
		var text bytes.Buffer
		if err := t.ExecuteTemplate(&text, file, api); err != nil {
			return nil, errors.Wrap(err, file)
		}
		formatted, err := format.Source(text.Bytes())
		if err != nil {
			return nil, errors.Wrap(err, file)
		}
		files["go/"+file+".gen.go"] = formatted
	}
	return files, nil
}

// initialisms are words that Go writes in capitals.
var initialisms = map[string]string{"api": "API", "id": "ID", "ids": "IDs", "json": "JSON", "mrr": "MRR", "url": "URL"}

// goWords splits a name at capitals, and at characters that are neither letters nor digits.
func goWords(name string) (words []string) {
	begin := true
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			begin = true
			continue
		case begin || unicode.IsUpper(r):
			words = append(words, "")
			begin = false
		}
		words[len(words)-1] += string(unicode.ToLower(r))
	}
	return words
}

func goName(name string) string {
	var text strings.Builder
	for _, word := range goWords(name) {
		if short, ok := initialisms[word]; ok {
			word = short
		}
		text.WriteString(pascal(word))
	}
	return text.String()
}

// goLocal is the name of an argument.
func goLocal(name string) string {
	first := goWords(name)[0]
	return first + goName(name)[len(first):]
}

// goTypeName is the name of an object. In Go, Event is the interface of all payloads, so the object
// of that name becomes FeedEvent.
func goTypeName(name string) string {
	if name == "Event" {
		return "FeedEvent"
	}
	return goName(name)
}

// goConstant is the name of an enum's value. Error codes have short names, because they are the
// targets of errors.Is.
func goConstant(e *Enum, value string) string {
	if e.Name == "ErrorCode" {
		return goName(strings.ToLower(value))
	}
	return goName(e.Name) + goName(value)
}

// goValue is the type of a value that is present and not null.
func goValue(r Ref) string {
	switch r.Type {
	case "string", "any":
		return r.Type
	case "integer":
		return "int64"
	case "number":
		return "float64"
	case "boolean":
		return "bool"
	case "time":
		return "time.Time"
	case "list":
		return "[]" + goRef(*r.Item)
	case "map":
		return "map[string]" + goRef(*r.Item)
	case "object":
		return goTypeName(r.Object.Name)
	case "enum":
		return goName(r.Enum.Name)
	case "event":
		return "Event"
	}
	panic("a type that Go has no name for: " + r.Type)
}

// goRef is the type of a value that is present.
func goRef(r Ref) string {
	if r.Nullable && !goHoldsNil(r) {
		return "*" + goValue(r)
	}
	return goValue(r)
}

func goHoldsNil(r Ref) bool { return slices.Contains([]string{"any", "list", "map", "event"}, r.Type) }

// goMember is the type of a member. If a member can't be omitted, nil means null. If it can't be
// null, nil omits it.
func goMember(f Field) string {
	switch {
	case f.Required:
		return goRef(f.Type)
	case f.Type.Nullable:
		return "Optional[" + goValue(f.Type) + "]"
	case goHoldsNil(f.Type):
		return goValue(f.Type)
	default:
		return "*" + goValue(f.Type)
	}
}

func goTag(f Field) string {
	switch {
	case f.Type.Type == "event":
		return "`json:\"-\"`" // see payload in object.go
	case f.Required:
		return "`json:\"" + f.Name + "\"`"
	default:
		return "`json:\"" + f.Name + ",omitzero\"`"
	}
}

// goParam is the type of a query parameter. A zero value is omitted. Only `after` needs a pointer,
// because 0 has a meaning there.
func goParam(f Field) string {
	if f.Name == "after" {
		return "*" + goValue(f.Type)
	}
	return goValue(f.Type)
}

// goResult is the result type of a method.
func goResult(r Ref) string {
	if r.Type == "object" {
		return "*" + goValue(r)
	}
	return goValue(r)
}

// goAnswered are the received objects, except pages, which share one type.
func goAnswered(api *API) (objects []*Object) {
	for _, o := range api.Objects {
		if _, page := o.field("nextCursor"); o.Received && !page {
			objects = append(objects, o)
		}
	}
	return objects
}

// goPayload is the member that holds an event of any type, or nil.
func goPayload(o *Object) *Field {
	for _, f := range o.Fields {
		if f.Type.Type == "event" {
			return &f
		}
	}
	return nil
}

func goHas(fields []Field, name string) bool {
	return slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name })
}

func goComment(indent, text string) string {
	if text == "" {
		return ""
	}
	var lines strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		lines.WriteString(strings.TrimRight(indent+"// "+line, " \n") + "\n")
	}
	return lines.String()
}

// goDescribe is the comment of a type. Without a description in the contract, it uses a default.
func goDescribe(name, doc, otherwise string) string {
	if doc == "" {
		return name + " " + otherwise + "."
	}
	return name + ": " + doc
}

// goSentence adds a full stop if there is none.
func goSentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// goLowerFirst turns a text into the continuation of a sentence.
func goLowerFirst(text string) string {
	if len(text) > 1 && unicode.IsLower(rune(text[1])) {
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}
