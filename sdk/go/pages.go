package earshot

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
)

// List is a list that is read page by page, on demand. Each of its iterators starts again.
type List[T any] struct {
	ctx     context.Context
	core    *core
	request request
	options []CallOption
}

// Page is one page of a list.
type Page[T any] struct {
	Data []T `json:"data"`
	// NextCursor is where the next page begins; it is nil on the last page. To continue there later,
	// pass it as Cursor in the parameters of a list.
	NextCursor *string `json:"nextCursor"`
	// Deleted holds deletions, only with IncludeDeleted.
	Deleted []Deletion `json:"deleted,omitzero"`
	// SyncCursor is where a list in the order of changes can continue later.
	SyncCursor *string `json:"syncCursor,omitzero"`
	// Extra holds the members that this version doesn't know.
	Extra map[string]json.RawMessage `json:"-"`
}

// UnmarshalJSON also keeps unknown members.
func (p *Page[T]) UnmarshalJSON(data []byte) error {
	type plain Page[T]
	return decodeObject(data, (*plain)(p), &p.Extra)
}

// MarshalJSON also writes unknown members.
func (p Page[T]) MarshalJSON() ([]byte, error) {
	type plain Page[T]
	return encodeObject(plain(p), p.Extra)
}

// All iterates over the items of all pages. An error ends the iteration.
func (l List[T]) All() iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for page, err := range l.Pages() {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Data {
				if !yield(&page.Data[i], nil) {
					return
				}
			}
		}
	}
}

// Pages iterates over the pages. An error ends the iteration.
func (l List[T]) Pages() iter.Seq2[*Page[T], error] {
	return func(yield func(*Page[T], error) bool) {
		r := l.request
		r.query = maps.Clone(r.query)
		for {
			page, err := whole[*Page[T]](l.ctx, l.core, r, l.options)
			if !yield(page, err) || err != nil || page.NextCursor == nil {
				return
			}
			r.query.Set("cursor", *page.NextCursor)
		}
	}
}
