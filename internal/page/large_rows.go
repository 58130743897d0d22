package page

import (
	"context"
	"math"
	"slices"

	"github.com/go-faster/errors"

	"earshot/internal/memory"
	"earshot/internal/store"
)

// MaxBytes is about what the rows of an answer come to at most: ten requests at
// once stay within what a process has, and a page of 25 ends early only where every
// row is near its limit.
const MaxBytes = 8 << 20

// fitting ends a page early where its rows come to more than an answer has room
// for, but has one row at least.
func (p Page[T]) fitting(list string, place func(T) []string, size func(T) int) Page[T] {
	total := 0
	for i, row := range p.Items {
		if total += size(row); total > MaxBytes && i > 0 {
			return Page[T]{Items: p.Items[:i], NextCursor: Cursor(list, place(p.Items[i-1]))}
		}
	}
	return p
}

// LargeRows is a list whose rows may be large. It is read by one statement (store.PageReader)
// that says of each row what it comes to, and holds the rows whole as far as they need no
// reservation (FirstRead). What else a page has is read by a second one, after memory was
// reserved for it, so that no more is loaded than is answered.
type LargeRows[ID comparable, T interface{ Read() store.Extent }] struct {
	List   string
	Memory *Reservation
	Place  func(T) []string
	ID     func(T) ID
	// Load reads rows whole.
	Load func(ids ...ID) ([]T, error)
	// Size is what the row comes to in the answer. What was stored may be escaped
	// there, to six times as much.
	Size func(T) int
}

const (
	// FirstRead is how much of the large columns of a list's rows is read with their places.
	FirstRead = memory.FreeRows
	// All is for the statement that loads rows whole, which were measured before.
	All = math.MaxInt64
)

// Filled is the page with whole rows. Those that were deleted between the statements are
// left out, and the places are still those of the first. It refuses where answers under way
// leave no memory for the rows.
func (h LargeRows[ID, T]) Filled(ctx context.Context, p Page[T]) (Page[T], error) {
	p = p.fitting(h.List, h.Place, func(row T) int { return row.Read().Bytes })
	total := 0
	var lacking []ID
	for _, row := range p.Items {
		total += row.Read().Bytes
		if !row.Read().Whole {
			lacking = append(lacking, h.ID(row))
		}
	}
	if err := h.Memory.Reserve(ctx, total); err != nil {
		return Page[T]{}, err
	}
	if len(lacking) == 0 {
		return p.fitting(h.List, h.Place, h.Size), nil
	}
	loaded, err := h.Load(lacking...)
	if err != nil {
		return Page[T]{}, errors.Wrap(err, "load the rows of a page")
	}
	return h.completed(p, loaded), nil
}

// completed is the page with the rows in place of those that lacked something.
func (h LargeRows[ID, T]) completed(p Page[T], loaded []T) Page[T] {
	whole := make(map[ID]T, len(p.Items))
	for _, row := range slices.Concat(p.Items, loaded) {
		if row.Read().Whole {
			whole[h.ID(row)] = row
		}
	}
	p = p.fitting(h.List, h.Place, func(row T) int {
		if found, ok := whole[h.ID(row)]; ok {
			return h.Size(found)
		}
		return 0
	})
	out := Page[T]{Items: make([]T, 0, len(p.Items)), NextCursor: p.NextCursor}
	for _, row := range p.Items {
		if found, ok := whole[h.ID(row)]; ok {
			out.Items = append(out.Items, found)
		}
	}
	return out
}

// JSONSize is what text comes to as JSON, or a little more.
func JSONSize[T ~string | ~[]byte](text T) int {
	n := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' || c == '<' || c == '>' || c == '&':
			n += len(`\u003c`) - 1
		case c == '"' || c == '\\':
			n++
		}
	}
	return n
}
