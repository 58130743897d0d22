package feedback

import (
	"bytes"
	"encoding/json"
	"time"

	"earshot/ent/db"
)

// differs calls set with the member of a patch where it is there and another than
// before.
func differs[T comparable, U any](in *T, old T, set func(T) U) {
	if in != nil && *in != old {
		set(*in)
	}
}

// orEmpty puts a value that may be null into an update. Ent takes one or the
// other, not both.
func orEmpty[T, U any](value *T, set func(T) U, empty func() U) {
	if value == nil {
		empty()
	} else {
		set(*value)
	}
}

// patchDocument puts a body's document into an update where it says something
// else than before.
func patchDocument[U any](body Body, old json.RawMessage, set func(json.RawMessage) U, empty func() U) {
	switch document := body.document(); {
	case sameJSON(document, old):
	case document == nil:
		empty()
	default:
		set(document)
	}
}

// unchanged reports whether an update would write nothing.
func unchanged(m db.Mutation) bool { return len(m.Fields()) == 0 && len(m.ClearedFields()) == 0 }

// same reports whether both are nil or point at equal values.
func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// sameJSON reports whether two documents say the same: whoever sends back what
// was read has written the white space, escapes and order of keys anew.
func sameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return bytes.Equal(a, b) || bytes.Equal(canonical(a), canonical(b))
}

// canonical leaves numbers as they are: 1.0 isn't 1 to everybody.
func canonical(document json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	var value any
	// A document was read by the decoder before it came here.
	_ = d.Decode(&value)
	text, _ := json.Marshal(value)
	return text
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
