package page

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"earshot/internal/store"
)

// MaxSearch is as long as a search may be (docs/decisions/lists-and-search.md).
const MaxSearch = 200

// Search is a list of which only the rows that match a search are wanted.
type Search[P ~func(*sql.Selector), T any] struct {
	// List are the filters and the cursor, in whose order the rows come.
	List  []P
	Order string
	Match P
	// Holding asks the index for up to so many rows that may match.
	Holding func(ctx context.Context, limit int) ([]uuid.UUID, error)
	// Query reads rows in the order.
	Query func(ctx context.Context, limit, offset int, where ...P) ([]T, error)
}

// FirstLook is how many rows are looked at first, which takes half a millisecond, and finds
// a page of 30 of whatever is in one row of ten.
const FirstLook = 300

const (
	// Rows that are looked at before the index is asked, where the first look makes it
	// likely that the page is found in them: some milliseconds, and one row of forty.
	longLook = 1000
	// What the index may find and still be sorted. Beyond that, going through the
	// list finds a page sooner.
	maxHolding = 20_000
	// Where a frequent search finds nothing in so many rows, because what it finds
	// stands at the other end of the list, the page ends here, and the next one goes
	// on: a tenth of a second at most.
	maxLookThrough = 50_000
)

// Frequent reports whether a longer look is likely to find so many rows, going by what the
// first one found.
func Frequent(found, wanted int) bool { return found*longLook >= wanted*FirstLook }

// First returns the first rows that match, up to the limit. Where it stopped before
// the end of the list, stopped is the last row that it looked at.
func (q Search[P, T]) First(ctx context.Context, limit int) (rows []T, stopped *T, err error) {
	rows, last, err := q.within(ctx, limit, FirstLook)
	if err != nil || last == nil {
		return rows, nil, err
	}
	return q.Further(ctx, limit, len(rows))
}

// Further is First where the first look found too few.
func (q Search[P, T]) Further(ctx context.Context, limit, found int) (rows []T, stopped *T, err error) {
	if Frequent(found, limit) {
		rows, last, err := q.within(ctx, limit, longLook)
		if err != nil || last == nil {
			return rows, nil, err
		}
	}
	ids, err := q.Holding(ctx, maxHolding+1)
	if err != nil || len(ids) == 0 {
		return nil, nil, err
	}
	if len(ids) > maxHolding {
		return q.within(ctx, limit, maxLookThrough)
	}
	rows, err = q.Query(ctx, limit, 0, append([]P{P(store.OneOf(ids)), q.Match}, q.List...)...)
	return rows, nil, err
}

// within returns those of the next n rows of the list that match, up to the limit.
// Last is the last of the n, where there are that many and the limit wasn't reached.
func (q Search[P, T]) within(ctx context.Context, limit, n int) (rows []T, last *T, err error) {
	rows, err = q.Query(ctx, limit, 0, P(store.First(n, q.List, q.Order)), q.Match)
	if err != nil || len(rows) == limit {
		return rows, nil, err
	}
	last, err = q.At(ctx, n)
	return rows, last, err
}

// At is the nth row of the list, whether it matches or not; nil where there are fewer.
func (q Search[P, T]) At(ctx context.Context, n int) (*T, error) {
	rows, err := q.Query(ctx, 1, n-1, q.List...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}
