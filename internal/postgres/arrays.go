package postgres

import (
	"bytes"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// UuidArray is an array that pgx encodes without reflection and without text. It does so thirty times as fast as
// with a []uuid.UUID, which takes 3 µs for each id.
type UuidArray = pgtype.FlatArray[pgtype.UUID]

// UUIDs returns ids as an array for pgx.
func UUIDs[ID interface{ UUID() uuid.UUID }](ids []ID) UuidArray {
	all := make(UuidArray, len(ids))
	for i, id := range ids {
		all[i] = UUID(id)
	}
	return all
}

// UUIDSet returns distinct ids in Postgres' order, the order in which transactions lock rows. A statement that
// sorts them itself takes up to 0.1 ms longer.
func UUIDSet[ID interface{ UUID() uuid.UUID }](ids []ID) UuidArray {
	all := UUIDs(ids)
	slices.SortFunc(all, func(a, b pgtype.UUID) int { return bytes.Compare(a.Bytes[:], b.Bytes[:]) })
	return slices.Compact(all)
}

// UUID returns an id for pgx.
func UUID[ID interface{ UUID() uuid.UUID }](id ID) pgtype.UUID {
	return pgtype.UUID{Bytes: id.UUID(), Valid: true}
}

// MaybeUUID returns an id for pgx, or null for nil.
func MaybeUUID[ID interface{ UUID() uuid.UUID }](id *ID) pgtype.UUID {
	if id == nil {
		return pgtype.UUID{}
	}
	return UUID(*id)
}
