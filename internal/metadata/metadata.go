// Package metadata is the JSON object that a contact may carry: how it is read, judged, filled
// and written.
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
	// As for a body's document. Identify adds keys bit by bit, and every event
	// about a contact carries them all.
	maxBytes = 256 << 10
)

// Metadata is a JSON object in the order it was written, with the text of each
// value: through a map, keys would move and numbers beyond 2^53 would change.
type Metadata []member

type member struct {
	key   string
	value json.RawMessage
}

// Parse reads an object. Of a repeated key the last value counts, as
// everywhere in JSON.
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
		name := key.(string) // a key is nothing else
		if i, ok := at[name]; ok {
			m[i].value = value
			continue
		}
		at[name] = len(m)
		m = append(m, member{name, value})
	}
	return m, nil
}

// Filled is m with what other tells that m doesn't know: keys that m hasn't, behind
// its own, and those that are null in m, in their place. It goes through other in its
// order, and leaves out what doesn't fit. Changed says
// whether it is another than m.
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

// Check judges m by the limits.
func (m Metadata) Check(bad *problem.Fields) {
	if len(m) > maxKeys {
		bad.Add("metadata", "maxProperties", "must have at most %d keys, not %d", maxKeys, len(m))
		return
	}
	if size := len(m.Text()); size > maxBytes {
		bad.Add("metadata", "maxBytes", "must have at most %d bytes, not %d", maxBytes, size)
	}
}

// Text is the object again, without white space between its parts.
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

// text is the member as it stands in the object.
func (m member) text() []byte {
	// A string always encodes, and a value was read by the decoder.
	key, _ := json.Marshal(m.key)
	out := bytes.NewBuffer(key)
	out.WriteByte(':')
	_ = json.Compact(out, m.value)
	return out.Bytes()
}
