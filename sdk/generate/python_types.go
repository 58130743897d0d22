package main

import (
	"slices"
	"strings"
)

// pyReceived is the type of a received value. Unknown values of enums are text.
func pyReceived(r Ref) string {
	return pythonType(r, "List", "Dict", "", func(e string) string { return "Union[" + e + ", str]" })
}

// pySent is the type of a value that users pass, in the modules of the resources.
func pySent(r Ref) string {
	return pythonType(r, "Sequence", "Mapping", "model.", func(e string) string { return e })
}

func pythonType(r Ref, list, mapping, module string, enum func(string) string) string {
	var name string
	switch r.Type {
	case "string":
		name = "str"
	case "integer":
		name = "int"
	case "number":
		name = "float"
	case "boolean":
		name = "bool"
	case "time":
		name = "datetime"
	case "list":
		name = list + "[" + pythonType(*r.Item, list, mapping, module, enum) + "]"
	case "map":
		name = mapping + "[str, " + pythonType(*r.Item, list, mapping, module, enum) + "]"
	case "object":
		name = module + r.Object.Name
	case "enum":
		name = enum(module + r.Enum.Name)
	case "event":
		name = module + "Payload"
	default:
		name = "Any"
	}
	if r.Nullable {
		return "Optional[" + name + "]"
	}
	return name
}

// pyOptional is the type of a received member that may be missing.
func pyOptional(r Ref) string {
	r.Nullable = true
	return pyReceived(r)
}

// pyGiven is the type of a member of a typed dictionary. It is in the same module as the other
// types.
func pyGiven(r Ref) string { return strings.ReplaceAll(pySent(r), "model.", "") }

// pyArgument is the type of a member of the body that may be omitted, which differs from null.
func pyArgument(r Ref) string {
	null := ""
	if r.Nullable {
		r.Nullable, null = false, "None, "
	}
	return "Union[" + pySent(r) + ", " + null + "NotGiven] = NOT_GIVEN"
}

func pyAnyRequired(o *Object) bool {
	return slices.ContainsFunc(o.Fields, func(f Field) bool { return f.Required })
}

// pyNested reports whether an object that users fill in is a part of a body. Bodies themselves are
// arguments.
func pyNested(api *API, o *Object) bool {
	return o.Sent && slices.ContainsFunc(api.Objects, func(body *Object) bool {
		return slices.ContainsFunc(body.Fields, func(f Field) bool { return f.Type.Object == o || f.Type.Item != nil && f.Type.Item.Object == o })
	})
}

func pyFeeds(r *Resource) bool {
	return slices.ContainsFunc(r.Operations, func(op *Operation) bool { return op.Kind == Feed })
}
