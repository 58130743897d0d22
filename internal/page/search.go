package page

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"earshot/internal/store"
)

// MaxSearch is as long as a search may be (docs/decisions.md, Contacts).
const MaxSearch = 200

// Search is a list of which only the rows that match a search are wanted.
type Search[P ~func(*sql.Selector), T any] struct {
	// List are the filters and the cursor, in whose order the rows come.
	List  []P
	Order func(*sql.Selector)
	Match P
	// Holding asks the index for up to so many rows that may match.
	Holding func(limit int) ([]uuid.UUID, error)
	// Query reads rows in the order.
	Query func(ctx context.Context, limit, offset int, where ...P) ([]T, error)
}

const (
	// Rows that are looked at one by one before the index is asked: that takes some
	// milliseconds, and finds the page of whatever is in one row of forty.
	searchWindow = 1000
	// What the index may find and still be sorted. Beyond that, going through the
	// list finds a page sooner.
	maxHolding = 20_000
	// Where a frequent search finds nothing in so many rows, because what it finds
	// stands at the other end of the list, the page ends here, and the next one goes
	// on: a tenth of a second at most.
	maxLookThrough = 50_000
)

// First returns the first rows that match, up to the limit. Where it stopped before
// the end of the list, stopped is the last row that it looked at.
func (q Search[P, T]) First(ctx context.Context, limit int) (rows []T, stopped *T, err error) {
	rows, last, err := q.within(ctx, limit, searchWindow)
	if err != nil || last == nil {
		return rows, nil, err
	}
	ids, err := q.Holding(maxHolding + 1)
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
	end, err := q.Query(ctx, 1, n-1, q.List...)
	if err != nil || len(end) == 0 {
		return rows, nil, err
	}
	return rows, &end[0], nil
}
