package mcp

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// shape holds the contract's names in a value. All other names are the caller's own, such as the
// keys inside metadata, and stay the same. A nil shape has no names.
type shape struct {
	members map[string]member // by the contract's name
	ours    map[string]member // by the tools' name
	items   *shape
}

// member is the name to write and the shape of its value.
type member struct {
	name  string
	shape *shape
}

// shapeOf returns the shape of the values that a schema describes.
func shapeOf(of *openapi3.SchemaRef) *shape {
	s := &shape{}
	for name, p := range of.Value.Properties {
		s.add(name, shapeOf(p))
	}
	// Items without a schema are the caller's own.
	if of.Value.Items != nil && !of.Value.Items.Value.IsEmpty() {
		s.items = shapeOf(of.Value.Items)
	}
	for _, part := range slices.Concat(of.Value.AllOf, of.Value.OneOf) {
		for name, m := range shapeOf(part).members {
			s.add(name, m.shape)
		}
	}
	return s
}

// add adds a name of the contract.
func (s *shape) add(name string, of *shape) {
	if s.members == nil {
		s.members, s.ours = map[string]member{}, map[string]member{}
	}
	s.members[name] = member{Snake(name), of}
	s.ours[Snake(name)] = member{name, of}
}

// outward converts the contract's names to the tools' names.
func (s *shape) outward(raw []byte) []byte { return s.rename(raw, true) }

// inward makes a body from a tool's arguments, in the contract's names. It leaves out arguments that
// do not belong to the body. A member further inside that the tools do not know stays, so that the API
// judges it, even if it has the contract's spelling.
func (s *shape) inward(raw []byte) []byte { return s.object(raw, false, false) }

// rename converts the names that the shape holds, in valid JSON. The rest is copied byte for byte,
// which preserves numbers and the order of keys.
func (s *shape) rename(raw []byte, out bool) []byte {
	raw = bytes.TrimSpace(raw)
	switch {
	case s == nil || len(raw) == 0:
		return raw
	case raw[0] == '{' && s.members != nil:
		return s.object(raw, out, true)
	case raw[0] == '[' && s.items != nil:
		return s.list(raw, out)
	default:
		return raw
	}
}

// object converts an object. Unknown members are left out unless keep is true.
func (s *shape) object(raw []byte, out, keep bool) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	d := json.NewDecoder(bytes.NewReader(raw))
	_, _ = d.Token() // the opening brace
	for d.More() {
		token, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return raw // not JSON; the reader of the result reports it
		}
		name := token.(string)
		names, others := s.ours, s.members
		if out {
			names, others = s.members, nil
		}
		of, known := names[name]
		_, spelledAsInContract := others[name]
		switch {
		case known:
		case !keep:
			continue
		case spelledAsInContract:
			of = member{name: foreign + name}
		default:
			of = member{name: name}
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		quoted, _ := json.Marshal(of.name) // never fails: a string
		b.Write(quoted)
		b.WriteByte(':')
		b.Write(of.shape.rename(value, out))
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (s *shape) list(raw []byte, out bool) []byte {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return raw
	}
	for i, item := range items {
		items[i] = s.items.rename(item, out)
	}
	var b bytes.Buffer
	b.WriteByte('[')
	b.Write(bytes.Join(rawBytes(items), []byte{','}))
	b.WriteByte(']')
	return b.Bytes()
}

func rawBytes(items []json.RawMessage) [][]byte {
	all := make([][]byte, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}
