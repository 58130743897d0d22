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
	// Rows that are looked at one by one before the index is asked. A search that
	// finds one row in eighty fills its page with these, and others wait for some
	// milliseconds.
	searchWindow = 2000
	// What the index may find and still be sorted. More than that is one row in
	// fifty of a million: going through the list finds a page of them sooner.
	maxHolding = 20_000
)

// first returns the first rows that match, up to the limit.
func (q searched[P, T]) first(ctx context.Context, limit int) ([]T, error) {
	rows, err := q.query(ctx, limit, 0, P(store.First(searchWindow, q.list, q.order)), q.match)
	if err != nil || len(rows) == limit {
		return rows, err
	}
	beyond, err := q.query(ctx, 1, searchWindow, q.list...)
	if err != nil || len(beyond) == 0 {
		return rows, err
	}
	ids, err := q.holding(maxHolding + 1)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	where := append([]P{q.match}, q.list...)
	if len(ids) <= maxHolding {
		where = append(where, P(store.OneOf(ids)))
	}
	return q.query(ctx, limit, 0, where...)
}
