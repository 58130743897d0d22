package postgres

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// UuidArray is an array that pgx encodes without reflection and without text.
type UuidArray = pgtype.FlatArray[pgtype.UUID]

func UUIDs[ID interface{ UUID() uuid.UUID }](ids []ID) UuidArray {
	all := make(UuidArray, len(ids))
	for i, id := range ids {
		all[i] = UUID(id)
	}
	return all
}

func UUID[ID interface{ UUID() uuid.UUID }](id ID) pgtype.UUID {
	return pgtype.UUID{Bytes: id.UUID(), Valid: true}
}

func MaybeUUID[ID interface{ UUID() uuid.UUID }](id *ID) pgtype.UUID {
	if id == nil {
		return pgtype.UUID{}
	}
	return UUID(*id)
}
