package page

import (
	"context"

	"entgo.io/ent/dialect/sql"

	"earshot/internal/postgres"
)

// MaxSearch is the maximum length of a search (docs/decisions/lists-and-search.md).
const MaxSearch = 200

// Search is a list that is reduced to the rows that match a search.
type Search[P ~func(*sql.Selector), T any] struct {
	// List has the filters and the cursor. Order is the order of the rows.
	List  []P
	Order string
	Match P
	// Holding asks the index for rows that may match, up to a limit.
	Holding func(ctx context.Context, limit int) (postgres.UuidArray, error)
	// Query reads rows in the list's order.
	Query func(ctx context.Context, limit, offset int, where ...P) ([]T, error)
}

// FirstLook is the number of rows in the first look. It takes half a millisecond, and fills a page
// of 30 if one row in ten matches.
const FirstLook = 300

const (
	// longLook is the number of rows to look at before the index is asked, if the first look
	// suggests that they fill the page. It takes some milliseconds, and suffices if one row in
	// forty matches.
	longLook = 1000
	// maxHolding is the number of rows from the index that are still sorted. For more rows, reading
	// the list fills a page sooner.
	maxHolding = 20_000
	// maxLookThrough is the number of rows that one page of a frequent search looks at, which takes
	// at most a tenth of a second. If all matches are at the other end of the list, the page ends
	// here, and the next page continues.
	maxLookThrough = 50_000
)

// Frequent reports whether a longer look is likely to find the wanted number of rows, judging by
// the first look.
func Frequent(found, wanted int) bool { return found*longLook >= wanted*FirstLook }

// First returns the first matching rows, up to the limit. If it stopped before the end of the list,
// stopped is the last row that it looked at.
func (q Search[P, T]) First(ctx context.Context, limit int) (rows []T, stopped *T, err error) {
	rows, last, err := q.within(ctx, limit, FirstLook)
	if err != nil || last == nil {
		return rows, nil, err
	}
	return q.Further(ctx, limit, len(rows))
}

// Further continues First if the first look found too few rows.
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
	rows, err = q.Query(ctx, limit, 0, append([]P{P(oneOf(ids)), q.Match}, q.List...)...)
	return rows, nil, err
}

// within returns the matching rows among the next n rows of the list, up to the limit. Last is the
// nth row. It is nil if the list has fewer rows, or if the limit was reached.
func (q Search[P, T]) within(ctx context.Context, limit, n int) (rows []T, last *T, err error) {
	rows, err = q.Query(ctx, limit, 0, P(First(n, q.List, q.Order)), q.Match)
	if err != nil || len(rows) == limit {
		return rows, nil, err
	}
	last, err = q.At(ctx, n)
	return rows, last, err
}

// At returns the nth row of the list, matching or not. It is nil if the list has fewer rows.
func (q Search[P, T]) At(ctx context.Context, n int) (*T, error) {
	rows, err := q.Query(ctx, 1, n-1, q.List...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}
