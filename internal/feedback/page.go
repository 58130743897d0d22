package feedback

import (
	"encoding/base64"
	"strings"

	"earshot/internal/problem"
)

// Page is a slice of a list. NextCursor is nil on the last one.
type Page[T any] struct {
	Items      []T
	NextCursor *string
}

// PageQuery is what a caller asks of a list: a cursor of an earlier page, and a
// limit, either of which may be nil.
type PageQuery struct {
	Cursor *string
	Limit  *int
}

// Lists go by id, which sorts by time, and a cursor is the last id of a page: so
// rows that come and go neither hide nor repeat the others. It also names its
// list, so that a cursor of another one is refused instead of misread.

// limit checks the wanted page size.
func (q PageQuery) limit(bad *problem.Fields, standard, high int) int {
	if q.Limit == nil {
		return standard
	}
	if *q.Limit < 1 {
		bad.Add("limit", "minimum", "must be at least 1")
	}
	if *q.Limit > high {
		bad.Add("limit", "maximum", "must be at most %d", high)
	}
	return *q.Limit
}

// after reads the cursor; nil means from the start.
func after[T any, P interface {
	*T
	UnmarshalText(text []byte) error
}](bad *problem.Fields, list string, q PageQuery) *T {
	if q.Cursor == nil {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(*q.Cursor)
	id, ok := strings.CutPrefix(string(raw), list+"/")
	var last T
	if err != nil || !ok || P(&last).UnmarshalText([]byte(id)) != nil {
		bad.Add("cursor", "cursor", "is not a cursor of this list; take nextCursor of the page before")
		return nil
	}
	return &last
}

// page cuts a result that was asked for one row more than the limit.
func page[T any](list string, rows []T, limit int, id func(T) string) Page[T] {
	if len(rows) <= limit {
		return Page[T]{Items: rows}
	}
	rows = rows[:limit]
	cursor := base64.RawURLEncoding.EncodeToString([]byte(list + "/" + id(rows[limit-1])))
	return Page[T]{Items: rows, NextCursor: &cursor}
}
