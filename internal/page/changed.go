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

	"earshot/internal/postgres"
	"earshot/internal/problem"
)

// Sync is a caller's request for a list that keeps a copy in sync. Either member selects the order
// of changes, unless the caller asks for another order.
type Sync struct {
	// UpdatedSince leaves out rows that were updated earlier. Nil leaves out nothing.
	UpdatedSince   *time.Time `json:",omitempty"` // left out if nil, so that older cursors stay valid
	IncludeDeleted *bool      `json:",omitempty"`
}

// Check validates the request. A list in the order of changes sets byChange. Other orders have no
// place for deletions.
func (s Sync) Check(bad *problem.Fields, byChange bool) {
	bad.Moment("updatedSince", s.UpdatedSince)
	if s.deleted() && !byChange {
		bad.Add("includeDeleted", "updated", "is for a list in the order of changes")
	}
}

// Asked reports whether the caller asks for the order of changes.
func (s Sync) Asked() bool { return s.UpdatedSince != nil || s.deleted() }

func (s Sync) deleted() bool { return s.IncludeDeleted != nil && *s.IncludeDeleted }

// Since is the time of the earliest update to include.
func (s Sync) Since() time.Time {
	if s.UpdatedSince == nil {
		return time.Time{}
	}
	return *s.UpdatedSince
}

// A SyncPlace is a cursor of a list in the order of changes.
type SyncPlace struct {
	list string
	// after is the end of the previous page. Begun is the transaction number at which the first
	// page was read, or 0 at the start. The caller's copy has nothing that was deleted before it.
	after ChangePlace
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

func (at SyncPlace) cursor(of ChangePlace) *string {
	return Cursor(at.list, at.parts(of))
}

func (at SyncPlace) parts(of ChangePlace) []string {
	return []string{strconv.FormatInt(of.In, 10), of.ID.String(), strconv.FormatInt(at.begun, 10)}
}

// Changed is a list in the order of changes, with its deletions.
type Changed[ID interface {
	comparable
	UUID() uuid.UUID
}, T interface{ Read() Extent }, P ~func(*sql.Selector)] struct {
	LargeRows[ID, T]
	Store *postgres.DB
	// In returns the number of the transaction that last changed a row.
	In func(T) int64
	// Rows reads rows in the order of changes.
	Rows func(limit int, where P) ([]T, error)
	// Deletions selects the deleted rows of the list. Of is the parent of the list. It is nil for
	// lists of the organization.
	Deletions deletions
	Of        *uuid.UUID
	// Deleted returns the public id of a deleted row.
	Deleted func(uuid.UUID) string
}

// Deleted is a deletion as the caller gets it.
type Deleted struct {
	ID string
	At time.Time
}

// Page reads a page. It returns problem.Gone if deletions after the place are no longer stored, or
// if the place is older than the restore of a backup.
func (c Changed[ID, T, P]) Page(ctx context.Context, at SyncPlace, limit int, sync Sync) (Page[T], error) {
	changes, err := ReadChanges(ctx, c.Store)
	if err != nil {
		return Page[T]{}, err
	}
	first := at.begun == 0
	if first {
		at.begun = min(changes.Settled, changes.Durable)
	} else if at.begun < changes.Restored || at.after.In > changes.Next {
		return Page[T]{}, expired()
	}
	changes.Settled = max(changes.Settled, at.after.In) // the caller's cursor proves that it was settled
	rows, err := c.Rows(limit+1, ChangedBetween[P](at.after, changes.Settled))
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
	return problem.CursorExpired.Problem()
}

// deleted reads the deletions in the range of the page, so that each page reads its own part of the
// list. Removed is the number of the latest deletion that is no longer stored.
func (c Changed[ID, T, P]) deleted(
	ctx context.Context, at SyncPlace, changes ChangeLimits, limit int, sync Sync, rows []T,
) (dead []Tombstone, removed int64, err error) {
	if !sync.deleted() {
		return nil, 0, nil
	}
	upTo := ChangePlace{In: changes.Settled - 1, ID: uuid.Max}
	if len(rows) > limit {
		upTo = c.placeOf(rows[limit-1])
	}
	dead, removed, err = ReadTombstones(ctx, c.Store, c.Deletions, deletedBetween{
		Of: c.Of, After: at.after, UpTo: upTo, Since: sync.Since(), Limit: limit + 1,
	})
	// Not nil, because a caller that asked for deletions gets an empty list.
	return append([]Tombstone{}, dead...), removed, err
}

// merged merges rows and deletions into a page.
func (c Changed[ID, T, P]) merged(
	ctx context.Context, at SyncPlace, changes ChangeLimits, limit int, rows []T, dead []Tombstone,
) (Page[T], error) {
	live, gone, last := 0, 0, at.after
	for live+gone < limit && (live < len(rows) || gone < len(dead)) {
		row, tombstone := endOfChanges, endOfChanges
		if live < len(rows) {
			row = c.placeOf(rows[live])
		}
		if gone < len(dead) {
			tombstone = ChangePlace{In: dead[gone].In, ID: dead[gone].ID}
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
	// A page with large rows may end early. It may then have a deletion that the next page has,
	// too.
	p, err := Filled(ctx, c.LargeRows, p)
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

// endOf returns the place at which the list continues after its end. It is behind all numbers that
// are settled and that Postgres can't assign again after a crash.
func endOf(changes ChangeLimits, last ChangePlace, told bool) ChangePlace {
	if told { // a visible change is on disk, so its number survives a crash
		changes.Durable = max(changes.Durable, last.In+1)
	}
	if end := (ChangePlace{In: min(changes.Settled, changes.Durable)}); before(last, end) {
		return end
	}
	return last
}

func (c Changed[ID, T, P]) placeOf(row T) ChangePlace {
	return ChangePlace{In: c.In(row), ID: c.ID(row).UUID()}
}

// endOfChanges is behind every place.
var endOfChanges = ChangePlace{In: math.MaxInt64, ID: uuid.Max}

func before(a, b ChangePlace) bool {
	if a.In != b.In {
		return a.In < b.In
	}
	return bytes.Compare(a.ID[:], b.ID[:]) < 0
}
