package main

import (
	"bytes"
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/go-faster/errors"
)

//go:embed python.tmpl
var pythonTemplate string

// python writes the types, the errors and the resources. It writes the resources for the
// synchronous client and for the asynchronous one.
func python(api *API) (map[string][]byte, error) {
	if err := pythonic(api); err != nil {
		return nil, err
	}
	t, err := template.New("").Funcs(template.FuncMap{
		"snake": pySnake, "pascal": pascal, "received": pyReceived, "sent": pySent, "docstring": pyDocstring, "quoted": pyQuoted,
		"envelope": pyEnvelope, "sorted": pyRequiredFirst, "placeholders": pyPlaceholders, "errorClass": pyErrorClass, "errorCodes": pyErrorCodes,
		"wireBody": pyWireBody, "hidden": pyHidden, "optional": pyOptional, "given": pyGiven, "argument": pyArgument, "anyRequired": pyAnyRequired,
		"nested": pyNested, "feeds": pyFeeds, "reader": pyReader, "answer": pyAnswer, "arguments": pyArguments, "summary": pySummary,
	}).Parse(pythonTemplate)
	if err != nil {
		return nil, errors.Wrap(err, "python.tmpl")
	}
	files := map[string][]byte{}
	for name, async := range map[string]bool{"version": false, "types": false, "errors": false, "sync": false, "async": true} {
		var out bytes.Buffer
		block := name
		if async || name == "sync" {
			block = "resources"
		}
		if err := t.ExecuteTemplate(&out, block, struct {
			*API
			Async bool
		}{api, async}); err != nil {
			return nil, errors.Wrap(err, name)
		}
		files["python/src/earshot/_generated_"+name+".py"] = pySpaced(out.Bytes())
	}
	return files, nil
}

// pythonic refuses names that the core could not tell apart, because it knows members only by their
// snake case.
func pythonic(api *API) error {
	for _, o := range api.Objects {
		for _, f := range o.Fields {
			if wire := pyCamel(pySnake(f.Name)); wire != f.Name {
				return errors.New(o.Name + "." + f.Name + " would be read as " + wire)
			}
		}
	}
	for _, r := range api.Resources {
		for _, op := range r.Operations {
			names := []string{"self", "idempotency_key", "if_match", "timeout", "max_retries", "on_answer"}
			fields := slices.Concat(op.PathParams, op.Query)
			if op.Body != nil {
				fields = append(fields, op.Body.Fields...)
			}
			for _, f := range fields {
				if slices.Contains(names, pySnake(f.Name)) {
					return errors.New(op.ID + " has two pyArguments " + pySnake(f.Name))
				}
				names = append(names, pySnake(f.Name))
			}
		}
	}
	return nil
}

var (
	pyCapital    = regexp.MustCompile(`[A-Z]`)
	pyUnderscore = regexp.MustCompile(`_[a-z]`)
	pyPlace      = regexp.MustCompile(`\{\w+\}`)
)

// pyKeywords are the Python keywords that the contract uses as names of members.
var pyKeywords = []string{"from", "import", "class", "global", "pass", "is", "in", "not", "or", "and", "def", "del", "with", "as", "for", "if"}

func pySnake(name string) string {
	s := pyCapital.ReplaceAllStringFunc(name, func(c string) string { return "_" + strings.ToLower(c) })
	if slices.Contains(pyKeywords, s) {
		s += "_"
	}
	return s
}

// pyCamel converts a name as the core does.
func pyCamel(name string) string {
	return pyUnderscore.ReplaceAllStringFunc(strings.TrimSuffix(name, "_"), func(s string) string { return strings.ToUpper(s[1:]) })
}

// pyReader is the function with which the core reads the answer.
func pyReader(op *Operation) string {
	switch op.Kind {
	case Paged:
		return "page(model." + op.Result.Object.Name + ")"
	case Feed:
		return "feed(model." + op.Page.Name + ")"
	default:
		return "data(" + pyResult(op) + ")"
	}
}

func pyResult(op *Operation) string {
	return pythonType(op.Result, "List", "Dict", "model.", func(e string) string { return "Union[" + e + ", str]" })
}

// pyAnswer is the return type of a method.
func pyAnswer(async bool, op *Operation) string {
	switch {
	case op.Kind == Paged && async:
		return "AsyncListing[model." + op.Result.Object.Name + "]"
	case op.Kind == Paged:
		return "Listing[model." + op.Result.Object.Name + "]"
	case op.Kind == Feed:
		return "model." + op.Page.Name
	default:
		return pyResult(op)
	}
}

func pySummary(op *Operation) string {
	if op.Deprecated {
		return op.Summary + ".\n\nDeprecated: the changelog of the API says until when it works."
	}
	return op.Summary + "."
}

// pyArguments documents the arguments of a method.
func pyArguments(op *Operation) string {
	fields := slices.Clone(op.PathParams)
	if op.Body != nil {
		fields = append(fields, pyRequiredFirst(op.Body.Fields)...)
	}
	var lines []string
	for _, f := range append(fields, op.Query...) {
		if f.Doc != "" {
			lines = append(lines, "    "+pySnake(f.Name)+": "+strings.Join(strings.Fields(f.Doc), " "))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "Args:\n" + strings.Join(lines, "\n")
}

// pyEnvelope reports whether an object is a page. The core has its own type for pages.
func pyEnvelope(api *API, o *Object) bool {
	for _, r := range api.Resources {
		for _, op := range r.Operations {
			if op.Page == o && op.Kind == Paged {
				return true
			}
		}
	}
	return false
}

// pyRequiredFirst puts members with a default after the others, as Python requires.
func pyRequiredFirst(fields []Field) []Field {
	ordered := slices.Clone(fields)
	slices.SortStableFunc(ordered, func(x, y Field) int {
		switch {
		case x.Required == y.Required:
			return 0
		case x.Required:
			return -1
		default:
			return 1
		}
	})
	return ordered
}

// pyPlaceholders removes the names from a path.
func pyPlaceholders(path string) string { return pyPlace.ReplaceAllString(path, "{}") }

// pyWireBody reports whether a member of a body has members of its own. Their names must still be
// converted to those of the contract.
func pyWireBody(r Ref) bool {
	return r.Object != nil || r.Item != nil && r.Item.Object != nil
}

// pyHidden reports whether a member must be kept out of logs. Such a member is shown only once.
func pyHidden(f Field) bool { return f.Name == "secret" || f.Name == "key" }

func pyQuoted(s string) string { return `"` + s + `"` }

// pyErrorClass is the class of a code, for example NotFoundError for ERR_NOT_FOUND.
func pyErrorClass(code string) string {
	var name strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(code, "ERR_"), "_") {
		name.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return name.String() + "Error"
}

func pyErrorCodes(api *API) []string {
	i := slices.IndexFunc(api.Enums, func(e *Enum) bool { return e.Name == "ErrorCode" })
	return api.Enums[i].Values
}
