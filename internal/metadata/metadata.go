// Package metadata parses, checks, fills and writes the JSON object that a contact may carry.
package metadata

import (
	"bytes"
	"encoding/json"

	"github.com/go-faster/errors"

	"earshot/internal/problem"
)

// The specification's limits.
const (
	maxKeys = 100
	// The same limit as for the document of a body. Identify adds keys one at a time, and every
	// event about a contact carries all of them.
	maxBytes = 256 << 10
)

// Metadata is a JSON object in its original order, with the original text of each value. A map
// would reorder keys and change numbers beyond 2^53.
type Metadata []member

type member struct {
	key   string
	value json.RawMessage
}

// Parse reads an object. For a repeated key the last value counts, as is usual for JSON.
func Parse(raw json.RawMessage) (Metadata, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	m := Metadata{}
	at := map[string]int{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errors.Wrap(err, "read a key")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errors.Wrap(err, "read a value")
		}
		name := key.(string) // a key is always a string
		if i, ok := at[name]; ok {
			m[i].value = value
			continue
		}
		at[name] = len(m)
		m = append(m, member{name, value})
	}
	return m, nil
}

// Filled returns m filled with members of other. It appends keys that m doesn't have, and replaces
// null values of m in place. It follows the order of other and skips members that don't fit. The
// result changed reports whether out differs from m.
func (m Metadata) Filled(other Metadata) (out Metadata, changed bool) {
	out = append(Metadata{}, m...)
	at := make(map[string]int, len(m))
	for i, own := range m {
		at[own.key] = i
	}
	room := maxBytes - len(m.Text())
	if len(m) == 0 {
		room++ // the first member has no comma before it
	}
	for _, o := range other {
		i, known := at[o.key]
		need := len(",") + len(o.text())
		if known {
			need = len(o.text()) - len(m[i].text())
		}
		switch {
		case need > room, known && (!m[i].isNull() || o.isNull()), !known && len(out) >= maxKeys:
			continue
		case known:
			out[i] = o
		default:
			out = append(out, o)
		}
		room, changed = room-need, true
	}
	return out, changed
}

func (m member) isNull() bool { return string(m.value) == "null" }

// Check reports violations of the limits.
func (m Metadata) Check(bad *problem.Fields) {
	if len(m) > maxKeys {
		bad.Add("metadata", "maxProperties", "must have at most %d keys, not %d", maxKeys, len(m))
		return
	}
	if size := len(m.Text()); size > maxBytes {
		bad.Add("metadata", "maxBytes", "must have at most %d bytes, not %d", maxBytes, size)
	}
}

// Text returns the object without white space between its parts.
func (m Metadata) Text() json.RawMessage {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, own := range m {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(own.text())
	}
	out.WriteByte('}')
	return out.Bytes()
}

// text returns the member as it appears in the object.
func (m member) text() []byte {
	// These calls can't fail: a string always encodes, and the decoder has accepted the value.
	key, _ := json.Marshal(m.key)
	out := bytes.NewBuffer(key)
	out.WriteByte(':')
	_ = json.Compact(out, m.value)
	return out.Bytes()
}
