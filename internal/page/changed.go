package page

import (
	"bytes"
	"context"
	"math"
	"strconv"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/internal/problem"
	"earshot/internal/store"
)

// Sync is what a caller asks of a list to keep a copy of it in step. Either member asks for
// the order of changes, unless another one is asked for.
type Sync struct {
	// UpdatedSince leaves out what was updated earlier; nil leaves out nothing.
	UpdatedSince   *time.Time `json:",omitempty"` // so that cursors from before go on
	IncludeDeleted *bool      `json:",omitempty"`
}

// Check checks it. ByChange says that the list goes by changes; no other order has a place
// for what was deleted.
func (s Sync) Check(bad *problem.Fields, byChange bool) {
	bad.Moment("updatedSince", s.UpdatedSince)
	if s.deleted() && !byChange {
		bad.Add("includeDeleted", "updated", "is for a list in the order of changes")
	}
}

// Asked reports whether there is any of it.
func (s Sync) Asked() bool { return s.UpdatedSince != nil || s.deleted() }

func (s Sync) deleted() bool { return s.IncludeDeleted != nil && *s.IncludeDeleted }

// Since is the moment from which on updates count.
func (s Sync) Since() time.Time {
	if s.UpdatedSince == nil {
		return time.Time{}
	}
	return *s.UpdatedSince
}

// A SyncPlace is a cursor of a list in the order of changes.
type SyncPlace struct {
	list string
	// after is where the page before ended, begun the number at which the first page was
	// read: the caller has nothing that was deleted before that. It is 0 from the start.
	after store.ChangePlace
	begun int64
}

// SyncPlace reads a cursor.
func (q Query) SyncPlace(bad *problem.Fields, list string) SyncPlace {
	at := SyncPlace{list: list}
	place := q.Place(bad, list, 3)
	if place == nil {
		return at
	}
	var err [3]error
	at.after.In, err[0] = strconv.ParseInt(place[0], 10, 64)
	at.after.ID, err[1] = uuid.Parse(place[1])
	at.begun, err[2] = strconv.ParseInt(place[2], 10, 64)
	if errors.Join(err[:]...) != nil || at.begun < 1 || *at.cursor(at.after) != *q.Cursor {
		BadCursor(bad)
	}
	return at
}

func (at SyncPlace) cursor(of store.ChangePlace) *string {
	return Cursor(at.list, at.parts(of))
}

func (at SyncPlace) parts(of store.ChangePlace) []string {
	return []string{strconv.FormatInt(of.In, 10), of.ID.String(), strconv.FormatInt(at.begun, 10)}
}

// Changed is a list in the order of changes, with what was deleted.
type Changed[ID interface {
	comparable
	UUID() uuid.UUID
}, T interface{ Read() store.Extent }, P ~func(*sql.Selector)] struct {
	LargeRows[ID, T]
	Store *store.Store
	// In is the number of the transaction that changed a row last.
	In func(T) int64
	// Rows reads rows in the order of changes.
	Rows func(limit int, where P) ([]T, error)
	// Deletions are the deleted ones of the list, Of is what it is a list of; nil is the
	// organization.
	Deletions store.Deletions
	Of        *uuid.UUID
	// Deleted is the id of a deleted one.
	Deleted func(uuid.UUID) string
}

// Deleted is what is told of what was deleted.
type Deleted struct {
	ID string
	At time.Time
}

// Page reads a page. It is problem.Gone where deletions that the caller doesn't know of aren't
// kept any more, and where the place is from before a backup was restored.
func (c Changed[ID, T, P]) Page(ctx context.Context, at SyncPlace, limit int, sync Sync) (Page[T], error) {
	changes, err := c.Store.Changes(ctx)
	if err != nil {
		return Page[T]{}, err
	}
	first := at.begun == 0
	if first {
		at.begun = min(changes.Settled, changes.Durable)
	} else if at.begun < changes.Restored || at.after.In > changes.Next {
		return Page[T]{}, expired()
	}
	changes.Settled = max(changes.Settled, at.after.In) // the caller was told that it is
	rows, err := c.Rows(limit+1, store.ChangedBetween[P](at.after, changes.Settled))
	if err != nil {
		return Page[T]{}, errors.Wrap(err, "list what changed")
	}
	dead, removed, err := c.deleted(ctx, at, changes, limit, sync, rows)
	if err != nil {
		return Page[T]{}, err
	}
	if !first && removed >= max(at.after.In, at.begun) {
		return Page[T]{}, expired()
	}
	return c.merged(ctx, at, changes, limit, rows, dead)
}

func expired() error {
	return problem.New(problem.Gone, "What changed since this cursor isn't known any more; read the list anew, without a cursor.").
		With("reason", "cursor_expired")
}

// deleted reads what was deleted as far as the page may reach, so that each page looks at its
// own part of the list. Removed is the number of the latest deletion that isn't known any more.
func (c Changed[ID, T, P]) deleted(
	ctx context.Context, at SyncPlace, changes store.Changes, limit int, sync Sync, rows []T,
) (dead []store.Tombstone, removed int64, err error) {
	if !sync.deleted() {
		return nil, 0, nil
	}
	upTo := store.ChangePlace{In: changes.Settled - 1, ID: uuid.Max}
	if len(rows) > limit {
		upTo = c.placeOf(rows[limit-1])
	}
	dead, removed, err = c.Store.Deleted(ctx, c.Deletions, store.DeletedBetween{
		Of: c.Of, After: at.after, UpTo: upTo, Since: sync.Since(), Limit: limit + 1,
	})
	// Not nil: who asked for deletions is told that there are none.
	return append([]store.Tombstone{}, dead...), removed, err
}

// merged is the page of both.
func (c Changed[ID, T, P]) merged(
	ctx context.Context, at SyncPlace, changes store.Changes, limit int, rows []T, dead []store.Tombstone,
) (Page[T], error) {
	live, gone, last := 0, 0, at.after
	for live+gone < limit && (live < len(rows) || gone < len(dead)) {
		row, tombstone := endOfChanges, endOfChanges
		if live < len(rows) {
			row = c.placeOf(rows[live])
		}
		if gone < len(dead) {
			tombstone = store.ChangePlace{In: dead[gone].In, ID: dead[gone].ID}
		}
		if before(row, tombstone) {
			last, live = row, live+1
		} else {
			last, gone = tombstone, gone+1
		}
	}
	p := Page[T]{Items: rows[:live]}
	if live < len(rows) || gone < len(dead) {
		p.NextCursor = at.cursor(last)
	}
	c.List, c.Place = at.list, func(row T) []string { return at.parts(c.placeOf(row)) }
	// A page that ends early, because its rows are large, may tell of a deletion that the next
	// page tells of, too.
	p, err := c.Filled(ctx, p)
	if err != nil {
		return p, err
	}
	if dead != nil {
		p.Deleted = []Deleted{}
	}
	for _, d := range dead[:gone] {
		p.Deleted = append(p.Deleted, Deleted{c.Deleted(d.ID), d.DeletedAt})
	}
	if p.SyncCursor = p.NextCursor; p.SyncCursor == nil {
		p.SyncCursor = at.cursor(endOf(changes, last, live+gone > 0))
	}
	return p, nil
}

// endOf is where the list goes on, once it was told to its end: behind all numbers that are settled
// and that no change after a crash can have.
func endOf(changes store.Changes, last store.ChangePlace, told bool) store.ChangePlace {
	if told { // a change that somebody can read is on disk, and so its number is known after a crash
		changes.Durable = max(changes.Durable, last.In+1)
	}
	if end := (store.ChangePlace{In: min(changes.Settled, changes.Durable)}); before(last, end) {
		return end
	}
	return last
}

func (c Changed[ID, T, P]) placeOf(row T) store.ChangePlace {
	return store.ChangePlace{In: c.In(row), ID: c.ID(row).UUID()}
}

// endOfChanges is behind every place.
var endOfChanges = store.ChangePlace{In: math.MaxInt64, ID: uuid.Max}

func before(a, b store.ChangePlace) bool {
	if a.In != b.In {
		return a.In < b.In
	}
	return bytes.Compare(a.ID[:], b.ID[:]) < 0
}
