package change

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
)

// Value returns nil for a member that is absent or null.
func Value[T any](n nullable.Nullable[T]) *T {
	v, err := n.Get()
	if err != nil {
		return nil
	}
	return &v
}

// Given calls fn if the member has a value, that is, if it is neither absent nor null.
func Given[T any](n nullable.Nullable[T], fn func(T)) {
	if v, err := n.Get(); err == nil {
		fn(v)
	}
}

// Differs calls set with a patch's member if it is present and differs from the old value.
func Differs[T comparable, U any](in *T, old T, set func(T) U) {
	if in != nil && *in != old {
		set(*in)
	}
}

// OrEmpty sets or clears a nullable field of an update. Ent accepts one of the two, not both.
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

// SameJSON reports whether two documents are equal apart from white space, escapes and the order of
// keys. A client that sends back a document has encoded it anew.
func SameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return bytes.Equal(a, b) || bytes.Equal(canonical(a), canonical(b))
}

// canonical keeps numbers as they are written, because some readers distinguish 1.0 from 1.
func canonical(document json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	var value any
	// The document is valid JSON, because the request decoder has already read it.
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
