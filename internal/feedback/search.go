package feedback

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"earshot/internal/store"
)

// searched is a list of which only the rows that match a search are wanted.
type searched[P ~func(*sql.Selector), T any] struct {
	// list are the filters and the cursor, in whose order the rows come.
	list  []P
	order func(*sql.Selector)
	match P
	// holding asks the index for up to so many rows that may match.
	holding func(limit int) ([]uuid.UUID, error)
	// query reads rows in the order.
	query func(ctx context.Context, limit, offset int, where ...P) ([]T, error)
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

// first returns the first rows that match, up to the limit. Where it stopped before
// the end of the list, stopped is the last row that it looked at.
func (q searched[P, T]) first(ctx context.Context, limit int) (rows []T, stopped *T, err error) {
	rows, last, err := q.within(ctx, limit, searchWindow)
	if err != nil || last == nil {
		return rows, nil, err
	}
	ids, err := q.holding(maxHolding + 1)
	if err != nil || len(ids) == 0 {
		return nil, nil, err
	}
	if len(ids) > maxHolding {
		return q.within(ctx, limit, maxLookThrough)
	}
	rows, err = q.query(ctx, limit, 0, append([]P{P(store.OneOf(ids)), q.match}, q.list...)...)
	return rows, nil, err
}

// within returns those of the next n rows of the list that match, up to the limit.
// Last is the last of the n, where there are that many and the limit wasn't reached.
func (q searched[P, T]) within(ctx context.Context, limit, n int) (rows []T, last *T, err error) {
	rows, err = q.query(ctx, limit, 0, P(store.First(n, q.list, q.order)), q.match)
	if err != nil || len(rows) == limit {
		return rows, nil, err
	}
	end, err := q.query(ctx, 1, n-1, q.list...)
	if err != nil || len(end) == 0 {
		return rows, nil, err
	}
	return rows, &end[0], nil
}
