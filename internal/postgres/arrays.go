package postgres

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// UuidArray is an array that pgx encodes without reflection and without text.
type UuidArray = pgtype.FlatArray[pgtype.UUID]

// UUIDs returns ids as an array for pgx.
func UUIDs[ID interface{ UUID() uuid.UUID }](ids []ID) UuidArray {
	all := make(UuidArray, len(ids))
	for i, id := range ids {
		all[i] = UUID(id)
	}
	return all
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
