// Package page cuts pages off lists: cursors, sizes, what a page's rows may come to, and
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

// Page is a slice of a list. NextCursor is nil on the last one.
type Page[T any] struct {
	Items      []T
	NextCursor *string
	// SyncCursor is where a list in the order of changes goes on, later too. Deleted are the
	// deleted ones of the page, nil unless they were asked for.
	SyncCursor *string
	Deleted    []Deleted
}

// Query is what a caller asks of a list: a cursor of an earlier page, and a
// limit, either of which may be nil.
type Query struct {
	// None of these is part of what ListOf digests.
	Cursor *string `json:"-"`
	Limit  *int    `json:"-"`
	// Memory is where a list of large rows reserves what they come to; nil is no bound.
	Memory *Reservation `json:"-"`
}

// Each is the page of what becomes of each item.
func Each[From, To any](p Page[From], to func(From) To) Page[To] {
	out := Page[To]{Items: make([]To, len(p.Items)), NextCursor: p.NextCursor, SyncCursor: p.SyncCursor, Deleted: p.Deleted}
	for i, item := range p.Items {
		out.Items[i] = to(item)
	}
	return out
}

// A cursor is the place of a page's last row in the order of its list, so rows
// that come and go neither hide nor repeat the others. It also names its list, so
// that a cursor of another one is refused instead of misread.

// ListOf names a list in its cursors: a digest of the list's name, the ids of what
// it is a list of, and the query with its filters and sort as they were sent. The
// page that is asked for is no part of it.
func ListOf(name string, of ...any) string {
	text, _ := json.Marshal(append([]any{name}, of...)) // a moment without a place in a calendar is refused anyway
	sum := sha256.Sum256(text)
	// Against slips, not against forgers: a cursor that was made up shows nothing
	// that its list doesn't.
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// Size checks the wanted page size.
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

// Whole is limit for a list that comes whole unless a page of it is asked for. Most
// is how many rows it may have; if there are more all the same, because they were
// made before, the rest are further pages.
func (q Query) Whole(bad *problem.Fields, most int) int {
	if q.Limit == nil && q.Cursor == nil {
		return max(most, Standard)
	}
	return q.Size(bad, Standard, Max)
}

// Place reads a cursor of several parts; it is nil from the start, and when the
// cursor is of another list.
func (q Query) Place(bad *problem.Fields, list string, parts int) []string {
	if q.Cursor == nil {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(*q.Cursor)
	place := strings.Split(string(raw), "/")
	// Decoding passes over line breaks and, unless it is strict, over stray bits.
	written := base64.RawURLEncoding.EncodeToString(raw) == *q.Cursor
	if err != nil || !written || len(place) != parts+1 || place[0] != list {
		BadCursor(bad)
		return nil
	}
	return place[1:]
}

// BadCursor refuses a cursor of another list, and what is none.
func BadCursor(bad *problem.Fields) {
	bad.Add("cursor", "cursor", "is not a cursor of this list; take nextCursor of the page before")
}

// After reads a cursor of one part, an id; nil means from the start.
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

// The page sizes of every list without its own: what is shown at once, and what a
// client may ask for.
const (
	Standard = 25
	Max      = 100
)

// Cut cuts a result that was asked for one row more than the limit. Place is
// where a row stands in the list's order.
func Cut[T any](list string, rows []T, limit int, place func(T) []string) Page[T] {
	if len(rows) <= limit {
		return Page[T]{Items: rows}
	}
	rows = rows[:limit]
	return Page[T]{Items: rows, NextCursor: Cursor(list, place(rows[limit-1]))}
}

// Cursor names a place in a list.
func Cursor(list string, place []string) *string {
	text := base64.RawURLEncoding.EncodeToString([]byte(strings.Join(append([]string{list}, place...), "/")))
	return &text
}

// ByID is the place of a row in a list that goes by id alone.
func ByID[T any](id func(T) string) func(T) []string {
	return func(row T) []string { return []string{id(row)} }
}

// Ordered is a list that goes by a column and then by id, both descending.
type Ordered[V any] struct {
	read  func(text string) (V, error)
	Write func(V) string
}

// The orders that lists have beside their ids.
var (
	// ByNumber is by votes or revenue.
	ByNumber = Ordered[int64]{
		func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) },
		func(v int64) string { return strconv.FormatInt(v, 10) },
	}
	// ByTime is by a moment.
	ByTime = Ordered[time.Time]{
		func(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) },
		func(v time.Time) string { return v.UTC().Format(time.RFC3339Nano) },
	}
)

// After reads a cursor; ok is false from the start.
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
