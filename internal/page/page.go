// Package page cuts lists into pages: cursors, page sizes, the limit for the bytes of a page, and
// searches through a list. README.md states the rules.
package page

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"earshot/internal/problem"
)

// Page is a part of a list. NextCursor is nil on the last page.
type Page[T any] struct {
	Items      []T
	NextCursor *string
	// SyncCursor is the place at which a list in the order of changes continues, also at a later
	// time. Deleted has the deletions of the page. It is nil if the caller didn't ask for them.
	SyncCursor *string
	Deleted    []Deleted
}

// Query is a caller's request for a page: a cursor of an earlier page, and a limit. Either may be
// nil.
type Query struct {
	// ListOf's digest leaves out these members.
	Cursor *string `json:"-"`
	Limit  *int    `json:"-"`
	// Memory reserves the memory for a list of large rows. Nil means no limit.
	Memory *Reservation `json:"-"`
}

// Each returns the page with each item converted.
func Each[From, To any](p Page[From], to func(From) To) Page[To] {
	out := Page[To]{Items: make([]To, len(p.Items)), NextCursor: p.NextCursor, SyncCursor: p.SyncCursor, Deleted: p.Deleted}
	for i, item := range p.Items {
		out.Items[i] = to(item)
	}
	return out
}

// A cursor is the position of a page's last row in the order of its list. Rows that come or go
// therefore neither hide nor repeat others. A cursor also names its list, so that a cursor of
// another list is refused.

// ListOf names a list in its cursors. The name is a digest of the list's name, the ids of its
// parents, and the query with its filters and sort as sent. It doesn't depend on the requested
// page.
func ListOf(name string, of ...any) string {
	text, _ := json.Marshal(append([]any{name}, of...)) // it fails only for times that are refused anyway
	sum := sha256.Sum256(text)
	// The digest prevents mistakes, not forgery. A forged cursor shows only rows of the list.
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// Size validates the requested page size.
func (q Query) Size(bad *problem.Fields, standard, high int) int {
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

// Whole is the limit for a list that is returned whole unless the caller asks for a page. The list
// may have at most most rows. If older data has more rows, the rest are further pages.
func (q Query) Whole(bad *problem.Fields, most int) int {
	if q.Limit == nil && q.Cursor == nil {
		return max(most, Standard)
	}
	return q.Size(bad, Standard, Max)
}

// Place reads a cursor of several parts. It returns nil at the start of the list, and for a cursor
// of another list.
func (q Query) Place(bad *problem.Fields, list string, parts int) []string {
	if q.Cursor == nil {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(*q.Cursor)
	place := strings.Split(string(raw), "/")
	// Decoding ignores line breaks and, unless it is strict, stray bits.
	written := base64.RawURLEncoding.EncodeToString(raw) == *q.Cursor
	if err != nil || !written || len(place) != parts+1 || place[0] != list {
		BadCursor(bad)
		return nil
	}
	return place[1:]
}

// BadCursor refuses a cursor of another list, and a text that is no cursor.
func BadCursor(bad *problem.Fields) {
	bad.Add("cursor", "cursor", "is not a cursor of this list; take nextCursor of the page before")
}

// After reads a cursor of one part, an id. It returns nil at the start of the list.
func After[T any, P interface {
	*T
	UnmarshalText(text []byte) error
}](bad *problem.Fields, list string, q Query) *T {
	place := q.Place(bad, list, 1)
	if place == nil {
		return nil
	}
	var last T
	if P(&last).UnmarshalText([]byte(place[0])) != nil {
		BadCursor(bad)
		return nil
	}
	return &last
}

// The page sizes of lists without their own: the default, and the maximum that a client may
// request.
const (
	Standard = 25
	Max      = 100
)

// Cut makes a page of a result that was queried with one row more than the limit. Place returns the
// position of a row in the list's order.
func Cut[T any](list string, rows []T, limit int, place func(T) []string) Page[T] {
	if len(rows) <= limit {
		return Page[T]{Items: rows}
	}
	rows = rows[:limit]
	return Page[T]{Items: rows, NextCursor: Cursor(list, place(rows[limit-1]))}
}

// Cursor writes a position in a list.
func Cursor(list string, place []string) *string {
	text := base64.RawURLEncoding.EncodeToString([]byte(strings.Join(append([]string{list}, place...), "/")))
	return &text
}

// ByID returns the position of a row in a list that is sorted by id alone.
func ByID[T any](id func(T) string) func(T) []string {
	return func(row T) []string { return []string{id(row)} }
}

// Ordered is a list that is sorted by a column and then by id, both descending.
type Ordered[V any] struct {
	read  func(text string) (V, error)
	Write func(V) string
}

// The orders of lists that aren't sorted by id alone.
var (
	// ByNumber sorts by votes or revenue.
	ByNumber = Ordered[int64]{
		func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) },
		func(v int64) string { return strconv.FormatInt(v, 10) },
	}
	// ByTime sorts by a time.
	ByTime = Ordered[time.Time]{
		func(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) },
		func(v time.Time) string { return v.UTC().Format(time.RFC3339Nano) },
	}
)

// After reads a cursor. The result ok is false at the start of the list, and for a bad cursor.
func (o Ordered[V]) After(bad *problem.Fields, list string, q Query, id interface {
	UnmarshalText(text []byte) error
},
) (last V, ok bool) {
	place := q.Place(bad, list, 2)
	if place == nil {
		return last, false
	}
	last, err := o.read(place[0])
	if err != nil || o.Write(last) != place[0] || id.UnmarshalText([]byte(place[1])) != nil {
		BadCursor(bad)
		return last, false
	}
	return last, true
}
