package change

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
)

// Value is nil for a member that was left out or is null.
func Value[T any](n nullable.Nullable[T]) *T {
	v, err := n.Get()
	if err != nil {
		return nil
	}
	return &v
}

// Given calls fn where the member has a value, neither left out nor null.
func Given[T any](n nullable.Nullable[T], fn func(T)) {
	if v, err := n.Get(); err == nil {
		fn(v)
	}
}

// Differs calls set with the member of a patch where it is there and another than
// before.
func Differs[T comparable, U any](in *T, old T, set func(T) U) {
	if in != nil && *in != old {
		set(*in)
	}
}

// OrEmpty puts a value that may be null into an update. Ent takes one or the
// other, not both.
func OrEmpty[T, U any](value *T, set func(T) U, empty func() U) {
	if value == nil {
		empty()
	} else {
		set(*value)
	}
}

// Unchanged reports whether an update would write nothing.
func Unchanged(m db.Mutation) bool { return len(m.Fields()) == 0 && len(m.ClearedFields()) == 0 }

// Same reports whether both are nil or point at equal values.
func Same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// SameJSON reports whether two documents say the same: whoever sends back what
// was read has written the white space, escapes and order of keys anew.
func SameJSON(a, b json.RawMessage) bool {
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

// SameTime reports whether both are nil or the same moment.
func SameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
