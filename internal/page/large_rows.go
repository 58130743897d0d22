package page

import (
	"context"
	"math"
	"slices"

	"github.com/go-faster/errors"

	"earshot/internal/memory"
)

// MaxBytes is the approximate maximum of the bytes of an answer's rows. Ten such answers in
// parallel fit into the memory of a process. A page of 25 rows ends early only if all rows are near
// their limit.
const MaxBytes = 8 << 20

// fitting ends a page early if its rows exceed MaxBytes. It leaves at least one row.
func fitting[T any](p Page[T], list string, place func(T) []string, size func(T) int) Page[T] {
	total := 0
	for i, row := range p.Items {
		if total += size(row); total > MaxBytes && i > 0 {
			return Page[T]{Items: p.Items[:i], NextCursor: Cursor(list, place(p.Items[i-1]))}
		}
	}
	return p
}

// LargeRows is a list whose rows may be large. The first statement (store.Reader) returns the
// size of each row, and whole rows as long as they need no reservation (FirstRead). A second
// statement reads the other rows of the page, after memory for them is reserved. The process
// therefore loads only rows that it returns.
type LargeRows[ID comparable, T interface{ Read() Extent }] struct {
	List   string
	Memory *Reservation
	Place  func(T) []string
	ID     func(T) ID
	// Load reads whole rows.
	Load func(ids ...ID) ([]T, error)
	// Size returns the bytes of a row in the answer. Escaping can make it six times as large as the
	// stored row.
	Size func(T) int
}

const (
	// FirstRead is the number of bytes of large columns that the first statement reads.
	FirstRead = memory.FreeRows
	// All is for the statement that loads whole rows, whose sizes are already known.
	All = math.MaxInt64
)

// Filled returns the page with whole rows. It leaves out rows that were deleted between the two
// statements. The positions are those of the first statement. It refuses if other answers leave no
// memory for the rows.
//
// It is no method, because methods of a generic type are compiled again in each package that uses a service
// with such a list.
func Filled[ID comparable, T interface{ Read() Extent }](ctx context.Context, h LargeRows[ID, T], p Page[T]) (Page[T], error) {
	p = fitting(p, h.List, h.Place, func(row T) int { return row.Read().Bytes })
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
		return fitting(p, h.List, h.Place, h.Size), nil
	}
	loaded, err := h.Load(lacking...)
	if err != nil {
		return Page[T]{}, errors.Wrap(err, "load the rows of a page")
	}
	return completed(h, p, loaded), nil
}

// completed replaces the incomplete rows of the page by the loaded ones.
func completed[ID comparable, T interface{ Read() Extent }](h LargeRows[ID, T], p Page[T], loaded []T) Page[T] {
	whole := make(map[ID]T, len(p.Items))
	for _, row := range slices.Concat(p.Items, loaded) {
		if row.Read().Whole {
			whole[h.ID(row)] = row
		}
	}
	p = fitting(p, h.List, h.Place, func(row T) int {
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

// JSONSize returns the size of a text as JSON, or slightly more.
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
