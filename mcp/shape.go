package mcp

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// shape tells which names in a value are the contract's. What it doesn't know is
// the caller's own, such as the keys inside metadata, and stays as it is. A nil
// shape knows nothing.
type shape struct {
	members map[string]member // by the contract's name
	ours    map[string]member // by the tools' name
	items   *shape
}

// member is a name to write and the shape of what stands under it.
type member struct {
	name  string
	shape *shape
}

// shapeOf is the shape of what a schema describes.
func shapeOf(of *openapi3.SchemaRef) *shape {
	s := &shape{}
	for name, p := range of.Value.Properties {
		s.add(name, shapeOf(p))
	}
	// Without a schema the items are the caller's own.
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

// add makes a name of the contract known.
func (s *shape) add(name string, of *shape) {
	if s.members == nil {
		s.members, s.ours = map[string]member{}, map[string]member{}
	}
	s.members[name] = member{Snake(name), of}
	s.ours[Snake(name)] = member{name, of}
}

// outward writes the contract's names as the tools have them.
func (s *shape) outward(raw []byte) []byte { return s.rename(raw, true) }

// inward writes the tools' names as the contract has them. Other members are left
// out: the contract ignores what it doesn't know, and the contract's own spelling
// isn't the tools'.
func (s *shape) inward(raw []byte) []byte { return s.rename(raw, false) }

// rename goes through valid JSON as far as the shape knows it. What lies beyond is
// copied byte for byte, so that numbers and the order of keys stay.
func (s *shape) rename(raw []byte, out bool) []byte {
	raw = bytes.TrimSpace(raw)
	switch {
	case s == nil || len(raw) == 0:
		return raw
	case raw[0] == '{' && s.members != nil:
		return s.object(raw, out)
	case raw[0] == '[' && s.items != nil:
		return s.list(raw, out)
	default:
		return raw
	}
}

func (s *shape) object(raw []byte, out bool) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	d := json.NewDecoder(bytes.NewReader(raw))
	_, _ = d.Token() // the brace, as was seen
	for d.More() {
		token, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return raw // not JSON; who reads it says so
		}
		name := token.(string)
		of, known := s.ours[name]
		if out {
			if of, known = s.members[name]; !known {
				of, known = member{name: name}, true
			}
		}
		if !known {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		quoted, _ := json.Marshal(of.name) // a string
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
