package contract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"earshot/internal/problem"
)

// ValidateQuery validates a query. It returns the query in the form that the generated code reads.
func (o Operation) ValidateQuery(bad *problem.Fields, raw string) string {
	clean := url.Values{}
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, text, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		text, err := url.QueryUnescape(text)
		in := o.Query[name]
		switch {
		case in == nil:
			bad.Add(cmp.Or(strings.ToValidUTF8(name, "\uFFFD"), "query"), "unknown", "%s", o.hint(name))
		case err != nil || !utf8.ValidString(text):
			bad.Add(name, "encoding", "must be percent-encoded UTF-8")
		case clean.Has(name):
			bad.Add(name, "type", "must be given once; several values are separated by commas")
		default:
			value, text := in.parse(text)
			in.validate(bad, value, name)
			clean.Set(name, text)
		}
	}
	return clean.Encode()
}

// hint names the parameter that is nearest to an unknown one.
func (o Operation) hint(name string) string {
	if len(o.Query) == 0 {
		return "is no parameter; this operation takes none in its query"
	}
	return fmt.Sprintf("is no parameter of this operation; the nearest is %s", nearest(name, slices.Sorted(maps.Keys(o.Query))))
}

// nearest returns the name that is nearest to an unknown one.
func nearest(unknown string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return cmp.Compare(distance(unknown, a), distance(unknown, b)) })
}

// distance returns the Levenshtein distance of two names without regard to case and underscores: the
// number of characters to insert, delete or replace.
func distance(a, b string) int {
	const long = 64 // longer than any name of the contract, so the rest doesn't matter
	a, b = strings.ToLower(strings.ReplaceAll(a[:min(len(a), long)], "_", "")), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0]++
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// ValidateBody validates a body. It returns the body in the form that the generated code reads, and the
// members that must have the current values of the resource.
func (o Operation) ValidateBody(bad *problem.Fields, raw []byte) (clean []byte, readOnly map[string]json.RawMessage) {
	if !checkJSON(bad, raw) {
		return nil, nil
	}
	raw = bytes.TrimSpace(raw)
	value, clean := o.Body.read(raw)
	o.Body.validate(bad, value)
	listed := map[string]int{}
	o.Body.eachUnknown(raw, nil, func(of *shape, place []string, sent []byte) {
		name := place[len(place)-1]
		switch {
		case len(place) == 1 && o.Kept[name]:
			return
		case len(place) == 1 && o.ReadOnly[name] != "":
			if readOnly == nil {
				readOnly = map[string]json.RawMessage{}
			}
			readOnly[name] = sent
			return
		}
		within := ""
		if len(place) > 2 && place[0] == o.Alone {
			within = place[1]
		}
		if listed[within]++; listed[within] <= maxUnknown {
			bad.Add(fieldName(append(place[:len(place)-1], quoted(name))), "unknown", "%s", o.notTaken(of, name))
		}
	})
	return clean, readOnly
}

const (
	// maxUnknown is the number of unknown members that a failure lists, of the body and of each item
	// that is validated separately. A body of 1 MiB has room for 100,000 of them.
	maxUnknown = 20
	// maxUnknownName is longer than any name of the contract, and bounds the size of the answer.
	maxUnknownName = 100
)

// quoted returns an unknown name as part of a place. A name that looks like a place is in quotes.
func quoted(name string) string {
	short := name[:min(len(name), maxUnknownName)]
	if strings.ContainsAny(name, `.[]"`) || !utf8.ValidString(short) || strings.Trim(name, "0123456789") == "" {
		return strconv.Quote(short)
	}
	return short
}

// notTaken says which members an object takes.
func (o Operation) notTaken(of *shape, name string) string {
	names := slices.Sorted(maps.Keys(of.members))
	if len(names) == 0 {
		return "is no member of this request, which has no body; its query takes " +
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(o.Query)), ", "), "nothing either")
	}
	return fmt.Sprintf("is no member of this request; the nearest of %s is %s", strings.Join(names, ", "), nearest(name, names))
}

// validate adds the schema's failures for a value at a place.
func (in *Input) validate(bad *problem.Fields, value any, at ...string) {
	var invalid *jsonschema.ValidationError
	if in.schema == nil || !errors.As(in.schema.Validate(value), &invalid) {
		return
	}
	var found problem.Fields
	collect(&found, invalid, at)
	// The library visits members in random order.
	slices.SortStableFunc(found, func(a, b problem.Field) int { return cmp.Compare(a.Field, b.Field) })
	// An empty text fails its pattern, too. One failure is enough.
	*bad = append(*bad, slices.CompactFunc(found, func(a, b problem.Field) bool {
		return a.Field == b.Field && (a.Rule == "minLength" || b.Rule == "minLength")
	})...)
}

// collect flattens the tree of causes into a list of members.
func collect(bad *problem.Fields, e *jsonschema.ValidationError, at []string) {
	for _, cause := range e.Causes {
		collect(bad, cause, at)
	}
	if len(e.Causes) > 0 {
		return
	}
	place := slices.Concat(at, e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			bad.Add(fieldName(append(place, name)), "required", "is required")
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			bad.Add(fieldName(append(place, name)), "required", "is required together with %s", k.Prop)
		}
	default:
		rule := "schema"
		if path := k.KeywordPath(); len(path) > 0 {
			rule = path[0]
		}
		bad.Add(fieldName(place), rule, "%s", words(k))
	}
}

var printer = message.NewPrinter(language.English)

// words describes the allowed values without repeating the bad one.
func words(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be of the type " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return fmt.Sprintf("must be one of %s", strings.Trim(fmt.Sprint(k.Want), "[]"))
	case *kind.MinLength:
		return "must have at least " + counted(k.Want, "character")
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s, not %d", counted(k.Want, "character"), k.Got)
	case *kind.Pattern:
		return "must match " + k.Want
	case *kind.Format:
		return "must be a date and time, as 2026-03-12T10:41:07Z, in the years 1 to 9999"
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	case *kind.MinItems:
		return "must have at least " + counted(k.Want, "item")
	case *kind.MaxItems:
		return "must have at most " + counted(k.Want, "item")
	case *kind.MaxProperties:
		return "must have at most " + counted(k.Want, "key")
	default:
		return k.LocalizedString(printer)
	}
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// fieldName writes a place in the domain's notation, for example body.text or events[1].
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
