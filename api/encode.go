package api

import (
	"fmt"
	"strings"

	"github.com/oapi-codegen/nullable"

	"earshot/api/gen"
	"earshot/internal/page"
)

// orNull turns a pointer into a member that has a value or is null. An unset Nullable would be
// encoded as a zero value.
func orNull[T any](p *T) nullable.Nullable[T] {
	if p == nil {
		return nullable.NewNullNullable[T]()
	}
	return nullable.NewNullableWithValue(*p)
}

// idOrNull does the same for an id.
func idOrNull[T fmt.Stringer](p *T) nullable.Nullable[string] {
	if p == nil {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue((*p).String())
}

// textOrNull makes a text from outside valid UTF-8, as JSON requires.
func textOrNull(raw *[]byte) nullable.Nullable[string] {
	if raw == nil {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(strings.ToValidUTF8(string(*raw), "\uFFFD"))
}

// each maps a list. The result is never nil, because an empty list isn't null.
func each[From, To any](from []From, to func(From) To) []To {
	out := make([]To, len(from))
	for i, f := range from {
		out[i] = to(f)
	}
	return out
}

// valueOf returns nil for a member that is missing or null.
func valueOf[T any](n nullable.Nullable[T]) *T {
	v, err := n.Get()
	if err != nil {
		return nil
	}
	return &v
}

// texts returns the values of a filter as strings.
func texts[T ~string](in *[]T) *[]string {
	if in == nil {
		return nil
	}
	out := each(*in, func(v T) string { return string(v) })
	return &out
}

func deleted(id fmt.Stringer) gen.DeletedResource { return gen.DeletedResource{ID: id.String()} }

// deletions returns nil if the client didn't ask for deletions.
func deletions(all []page.Deleted) *gen.Deletions {
	if all == nil {
		return nil
	}
	out := each(all, func(d page.Deleted) gen.Deletion { return gen.Deletion{ID: d.ID, DeletedAt: d.At} })
	return &out
}

func pageQuery(cursor *string, limit *int) page.Query {
	return page.Query{Cursor: cursor, Limit: limit}
}
