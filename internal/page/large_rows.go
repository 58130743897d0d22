package page

import (
	"context"

	"entgo.io/ent"
	"github.com/go-faster/errors"

	"earshot/internal/store"
)

// maxPageBytes is about what the rows of an answer come to at most: ten requests at
// once stay within what a process has, and a page of 25 ends early only where every
// row is near its limit.
const maxPageBytes = 8 << 20

// fitting ends a page early where its rows come to more than an answer has room
// for, but has one row at least.
func (p Page[T]) fitting(list string, place func(T) []string, size func(T) int) Page[T] {
	total := 0
	for i, row := range p.Items {
		if total += size(row); total > maxPageBytes && i > 0 {
			return Page[T]{Items: p.Items[:i], NextCursor: Cursor(list, place(p.Items[i-1]))}
		}
	}
	return p
}

// LargeRows is a list whose rows may be large. It is read in three steps, so that no more
// is loaded than is answered: the rows' places, the sizes of a page of them, and then
// the rows that fit. The sizes aren't in the first step, because the database would
// also measure what it only sorts or skips, and reads large rows whole for that.
type LargeRows[ID comparable, T interface {
	Value(name string) (ent.Value, error)
}] struct {
	List   string
	Memory *Reservation
	Place  func(T) []string
	ID     func(T) ID
	// Sizes reads rows with store.Sized.
	Sizes func(ids ...ID) ([]T, error)
	Load  func(ids ...ID) ([]T, error)
	// Size is what the row comes to in the answer. What was stored may be escaped
	// there, to six times as much.
	Size func(T) int
}

// Filled is the page with whole rows. Those that were deleted between the steps are
// left out, and the places are still those of the first. It refuses where answers under
// way leave no memory for the rows.
func (h LargeRows[ID, T]) Filled(ctx context.Context, p Page[T]) (Page[T], error) {
	measured, err := h.rows(h.Sizes, p)
	if err != nil {
		return Page[T]{}, errors.Wrap(err, "measure the rows of a page")
	}
	total := 0
	p = p.fitting(h.List, h.Place, func(row T) int { return sizeIn(measured, h.ID(row), stored[T]) })
	for _, row := range p.Items {
		total += sizeIn(measured, h.ID(row), stored[T])
	}
	if err := h.Memory.reserve(ctx, total); err != nil {
		return Page[T]{}, err
	}
	whole, err := h.rows(h.Load, p)
	if err != nil {
		return Page[T]{}, errors.Wrap(err, "load the rows of a page")
	}
	p = p.fitting(h.List, h.Place, func(row T) int { return sizeIn(whole, h.ID(row), h.Size) })
	out := Page[T]{Items: make([]T, 0, len(p.Items)), NextCursor: p.NextCursor}
	for _, row := range p.Items {
		if found, ok := whole[h.ID(row)]; ok {
			out.Items = append(out.Items, found)
		}
	}
	return out, nil
}

// rows reads the rows of a page.
func (h LargeRows[ID, T]) rows(read func(ids ...ID) ([]T, error), of Page[T]) (map[ID]T, error) {
	if len(of.Items) == 0 {
		return nil, nil
	}
	ids := make([]ID, len(of.Items))
	for i, row := range of.Items {
		ids[i] = h.ID(row)
	}
	rows, err := read(ids...)
	if err != nil {
		return nil, err
	}
	found := make(map[ID]T, len(rows))
	for _, row := range rows {
		found[h.ID(row)] = row
	}
	return found, nil
}

// sizeIn is 0 for a row that was deleted meanwhile.
func sizeIn[ID comparable, T any](rows map[ID]T, id ID, size func(T) int) int {
	if found, ok := rows[id]; ok {
		return size(found)
	}
	return 0
}

// stored is the size that store.Sized has put beside the row.
func stored[T interface {
	Value(name string) (ent.Value, error)
}](row T) int {
	size, err := row.Value(store.Size)
	if err != nil {
		return 0
	}
	n, _ := size.(int64)
	return int(n)
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
