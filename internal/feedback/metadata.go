package feedback

import (
	"bytes"
	"encoding/json"

	"github.com/go-faster/errors"

	"earshot/internal/problem"
)

// metadata is a JSON object in the order it was written, with the text of each
// value: through a map, keys would move and numbers beyond 2^53 would change.
type metadata []member

type member struct {
	key   string
	value json.RawMessage
}

// parseMetadata reads an object. Of a repeated key the last value counts, as
// everywhere in JSON.
func parseMetadata(raw json.RawMessage) (metadata, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	m := metadata{}
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

// filled is m with the keys of other that m hasn't (docs/decisions.md,
// Contacts).
func (m metadata) filled(other metadata) metadata {
	known := make(map[string]bool, len(m))
	for _, own := range m {
		known[own.key] = true
	}
	out := append(metadata{}, m...)
	for _, o := range other {
		if !known[o.key] {
			out = append(out, o)
		}
	}
	return out
}

func (m metadata) check(bad *problem.Fields) {
	if len(m) > maxMetadataKeys {
		bad.Add("metadata", "maxProperties", "must have at most %d keys, not %d", maxMetadataKeys, len(m))
		return
	}
	if size := len(m.text()); size > maxMetadataBytes {
		bad.Add("metadata", "maxBytes", "must have at most %d bytes, not %d", maxMetadataBytes, size)
	}
}

// text is the object again, without white space between its parts.
func (m metadata) text() json.RawMessage {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, own := range m {
		if i > 0 {
			out.WriteByte(',')
		}
		// A string always encodes, and a value was read by the decoder.
		key, _ := json.Marshal(own.key)
		out.Write(key)
		out.WriteByte(':')
		_ = json.Compact(&out, own.value)
	}
	out.WriteByte('}')
	return out.Bytes()
}
