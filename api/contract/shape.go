package contract

import (
	"encoding/json"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-faster/errors"

	"earshot/internal/jsonscan"
)

// shape is the form in which a value of a request is read before its schema validates it. A valid
// value is then rewritten for Go's decoder. It contains only the contract's members, because the
// decoder would take Name for name. It contains each of them once, because the decoder would merge
// repeated members. Its numbers and times have Go's notation.
type shape struct {
	// free is true for a value of any kind, which is taken as it is.
	free bool
	// members are the members that the contract names. For an object without them, the names are
	// counted up to most, and values is the shape of the values.
	members map[string]*shape
	values  *shape
	// closed is true for an object that has no other members.
	closed bool
	items  *shape
	// most is the maximum number of items or names, if there is one.
	most                                int
	integer, boolean, moment, isTrimmed bool
}

func shapeOf(s *openapi3.Schema) *shape {
	out := &shape{
		free:    s.Type.Includes("object") && s.Type.Includes("string"),
		integer: s.Type.Includes("integer"), boolean: s.Type.Includes("boolean"), moment: s.Format == "date-time", isTrimmed: s.Extensions["x-trimmed"] == true,
	}
	if s.Items != nil {
		out.items = shapeOf(s.Items.Value)
	}
	if s.AdditionalProperties.Schema != nil {
		out.values = shapeOf(s.AdditionalProperties.Schema.Value)
	}
	for _, limit := range []*uint64{s.MaxItems, s.MaxProps} {
		if limit != nil {
			out.most = int(*limit)
		}
	}
	out.members = map[string]*shape{}
	for name, p := range s.Properties {
		out.members[name] = shapeOf(p.Value)
	}
	for _, part := range s.AllOf {
		maps.Copy(out.members, shapeOf(part.Value).members)
	}
	out.closed = len(out.members) > 0
	return out
}

// read returns a value of valid JSON for the schema, and its text for the decoder.
func (s *shape) read(raw []byte) (value any, clean []byte) {
	switch first := raw[0]; {
	case s.free:
		return nil, raw // any kind is allowed, also null
	case first == '{':
		return s.readObject(raw)
	case first == '[':
		return s.readArray(raw)
	case first == '"':
		var sent string
		_ = json.Unmarshal(raw, &sent) // the JSON is valid
		text := s.text(sent)
		if text != sent {
			raw, _ = json.Marshal(text) // a string always encodes
		}
		return text, raw
	case first == 'n':
		return nil, raw
	case first == 't', first == 'f':
		return first == 't', raw
	default:
		number := s.number(string(raw))
		return number, []byte(number)
	}
}

func (s *shape) readObject(raw []byte) (any, []byte) {
	object := map[string]any{}
	if len(s.members) == 0 && s.values == nil {
		jsonscan.Members(raw, func(name string, _ []byte) {
			if len(object) <= s.most { // one too many is enough to fail
				object[name] = nil
			}
		})
		return object, raw
	}
	texts := make(map[string][]byte, len(s.members))
	jsonscan.Members(raw, func(name string, member []byte) {
		of := s.members[name]
		if of == nil && len(object) <= s.most {
			of = s.values
		}
		if of != nil {
			object[name], texts[name] = of.read(member)
		}
	})
	clean := append(make([]byte, 0, len(raw)), '{')
	for name, text := range texts {
		if len(clean) > 1 {
			clean = append(clean, ',')
		}
		quoted := []byte(`"` + name + `"`) // the contract's names need no escaping
		if s.values != nil {
			quoted, _ = json.Marshal(name)
		}
		clean = append(append(append(clean, quoted...), ':'), text...)
	}
	return object, append(clean, '}')
}

func (s *shape) readArray(raw []byte) (any, []byte) {
	items := []any{}
	if s.items == nil {
		return items, raw
	}
	clean := append(make([]byte, 0, len(raw)), '[')
	jsonscan.Items(raw, func(item []byte) {
		if s.most > 0 && len(items) > s.most {
			return // one too many is enough to fail
		}
		value, text := s.items.read(item)
		if items = append(items, value); len(items) > 1 {
			clean = append(clean, ',')
		}
		clean = append(clean, text...)
	})
	return items, append(clean, ']')
}

// eachUnknown calls fn for each member of a value that its object does not have in the contract, with
// the object's shape and the member's place.
func (s *shape) eachUnknown(raw []byte, at []string, fn func(of *shape, place []string, sent []byte)) {
	switch {
	case s.free:
	case raw[0] == '{' && s.closed:
		jsonscan.Members(raw, func(name string, member []byte) {
			place := append(slices.Clip(at), name)
			if of := s.members[name]; of != nil {
				of.eachUnknown(member, place, fn)
				return
			}
			fn(s, place, member)
		})
	case raw[0] == '[' && s.items != nil:
		n := 0
		jsonscan.Items(raw, func(item []byte) {
			if s.most > 0 && n > s.most {
				return // one too many is enough to fail
			}
			s.items.eachUnknown(item, append(slices.Clip(at), strconv.Itoa(n)), fn)
			n++
		})
	}
}

var aNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`)

// parse is read for the text of a query, in which commas separate the items of a list.
func (s *shape) parse(text string) (value any, clean string) {
	switch {
	case s.items != nil:
		var items []any
		texts := strings.Split(text, ",")
		for i, item := range texts {
			value, texts[i] = s.items.parse(item)
			items = append(items, value)
		}
		return items, strings.Join(texts, ",")
	case s.integer && aNumber.MatchString(text):
		number := s.number(text)
		return number, string(number)
	case s.boolean && (text == "true" || text == "false"):
		return text == "true", text
	default:
		text = s.text(text)
		return text, text
	}
}

const (
	// The maximum length of a number and of its exponent. Every usual notation of a 64-bit integer
	// fits.
	maxNumber, maxExponent = 40, 3
)

// number writes an integer in digits, because 100.0 and 1e2 are integers for JSON Schema but not
// for Go. It returns a fraction if the text is too long for an integer of the contract, or if no
// integer belongs here. Computing 1e9999999, for example, would take seconds.
func (s *shape) number(text string) json.Number {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if !s.integer || len(text) > maxNumber || len(exponent) > maxExponent {
		return "0.5"
	}
	if n, ok := new(big.Rat).SetString(text); ok && n.IsInt() {
		return json.Number(n.Num().String())
	}
	return json.Number(text)
}

func (s *shape) text(sent string) string {
	if s.isTrimmed {
		sent = strings.TrimSpace(sent)
	}
	if s.moment {
		sent = moment(sent)
	}
	return sent
}

// moment writes a date-time of RFC 3339 as Go reads it. T and Z become upper case. A leap second
// becomes the next second, as in Unix time and Postgres. An invalid date-time stays invalid.
func moment(sent string) string {
	text := strings.ToUpper(sent)
	const minute = len("2006-01-02T15:04:")
	if len(text) < minute+2 || text[minute:minute+2] != "60" {
		return text
	}
	var at time.Time
	if at.UnmarshalText([]byte(text[:minute]+"59"+text[minute+2:])) != nil || at.UTC().Format("15:04") != "23:59" {
		return sent
	}
	return at.Add(time.Second).Format(time.RFC3339Nano)
}

// validMoment is the format date-time for the result of moment. Years in JSON have four digits, in
// UTC and in every other zone.
func validMoment(value any) error {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	var at time.Time
	if err := at.UnmarshalText([]byte(text)); err != nil {
		return errors.Wrap(err, "read the moment")
	}
	if year := at.UTC().Year(); year < 1 || year > 9999 {
		return errors.New("not in the years 1 to 9999")
	}
	return nil
}
