package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"earshot/internal/problem"
)

// request is an operation's request, made from a tool's arguments.
type request struct {
	method, path string
	query        url.Values
	headers      http.Header
	body         []byte
	// unknown are the failures of arguments that the operation does not take. The API refuses such a
	// request.
	unknown problem.Fields
}

// refusal is a query parameter that no operation has. The API refuses a request with it, and lists
// all other failures of the request.
const refusal = "unknown_arguments"

func (r *request) target() string {
	if len(r.query) == 0 {
		return r.path
	}
	return r.path + "?" + r.query.Encode()
}

// choose returns the operation that the arguments ask for.
func (r *ready) choose(arguments map[string]json.RawMessage) (*operation, error) {
	raw, given := arguments["action"]
	switch {
	case len(r.actions) == 1:
		return r.operations[0], nil
	case !given && r.hasDefault():
		return r.operations[0], nil
	case !given:
		return nil, problem.Invalid("action", "required", "is required; the actions are %s", r.names())
	}
	var name string
	if err := json.Unmarshal(raw, &name); err == nil {
		if i := slices.Index(r.names(), name); i >= 0 {
			return r.operations[i], nil
		}
	}
	return nil, problem.Invalid("action", "enum", "is not an action of this tool; the actions are %s", r.names())
}

type words []string

func (w words) String() string { return strings.Join(w, ", ") }

func (r *ready) names() words {
	var all words
	for _, a := range r.actions {
		all = append(all, a.name)
	}
	return all
}

const (
	// maxUnknown is the number of unknown arguments that a failure lists. A message has room for many more.
	maxUnknown = 20
	// maxUnknownName is longer than any name of an argument, and bounds the size of the answer.
	maxUnknownName = 100
)

// unknown returns a failure for each argument that the operation does not take.
func (r *ready) unknown(op *operation, arguments map[string]json.RawMessage) (bad problem.Fields) {
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		switch {
		case op.input.Properties[name] != nil:
		case name == "action" && len(r.actions) > 1:
		case pieces[name] != nil && !r.writes():
		case len(bad) < maxUnknown:
			short := strings.ToValidUTF8(name[:min(len(name), maxUnknownName)], "")
			bad = append(bad, problem.Field{Field: short, Rule: "unknown", Message: r.takes(op)})
		}
	}
	return bad
}

// takes says which arguments an operation takes.
func (r *ready) takes(op *operation) string {
	asked := "this tool"
	if len(r.actions) > 1 {
		asked = "the action " + r.names()[slices.Index(r.operations, op)]
	}
	all := words(slices.Sorted(maps.Keys(op.input.Properties)))
	if len(all) == 0 {
		all = words{"none"}
	}
	return fmt.Sprintf("is not an argument of %s, which takes %s", asked, all)
}

// nobody replaces an invalid id in a path. No resource has this id.
const nobody = "-"

// A slash or a dot in an id would change the path.
var word = regexp.MustCompile(`^\w+$`)

// request makes the operation's request from the arguments.
func (o *operation) request(raw json.RawMessage, arguments map[string]json.RawMessage, unknown problem.Fields) (*request, error) {
	req := &request{method: o.method, path: o.path, query: url.Values{}, headers: http.Header{}, unknown: unknown}
	if len(unknown) > 0 {
		req.query.Set(refusal, "")
	}
	var bad problem.Fields
	for _, p := range o.parameters {
		value, given, ok := p.text(arguments[Snake(p.name)])
		switch {
		case !ok:
			bad.Add(Snake(p.name), "type", "must be a %s", p.kind())
		case p.in == openapi3.ParameterInPath && !given:
			bad.Add(Snake(p.name), "required", "is required")
		case p.in == openapi3.ParameterInPath && value == "":
			bad.Add(Snake(p.name), "minLength", "must have at least 1 character")
		case p.in == openapi3.ParameterInPath:
			if !word.MatchString(value) {
				value = nobody
			}
			req.path = strings.ReplaceAll(req.path, "{"+p.name+"}", value)
		case given && p.in == openapi3.ParameterInHeader:
			req.headers.Set(p.name, value)
		case given:
			req.query.Set(p.name, value)
		}
	}
	if len(bad) > 0 {
		return nil, append(bad, unknown...).Err()
	}
	if o.body != nil {
		req.body = o.body.inward(raw)
	}
	return req, nil
}

func (p parameter) kind() string {
	if p.list {
		return "list"
	}
	return "single value"
}

// text converts an argument for a path, a query or a header. Null counts as missing, because none
// of them has a null.
func (p parameter) text(raw json.RawMessage) (value string, given, ok bool) {
	var items []json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", false, true
	case raw[0] == '{':
		return "", false, false
	case raw[0] != '[':
		return plain(raw), true, true
	case !p.list || json.Unmarshal(raw, &items) != nil:
		return "", false, false
	}
	all := make([]string, len(items))
	for i, item := range items {
		if item[0] == '{' || item[0] == '[' {
			return "", false, false
		}
		all[i] = plain(item)
	}
	return strings.Join(all, ","), true, true
}

// plain returns the text of a string. A number or boolean stays as it was written.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
