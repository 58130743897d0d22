// Package publicid holds the typed ids of every resource.
//
// An id is a UUIDv7, so it sorts by the time it was made. The database keeps
// the 16 bytes as uuid; everything outside sees a prefix that names the kind,
// an underscore, and the same bytes as 26 characters of lower-case Crockford
// base32: pst_01k9v3…. Clients treat the whole as opaque.
//
// There is one Go type for each kind, so that the compiler refuses a post's id
// where a board's is wanted.
package publicid

import (
	"database/sql/driver"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// ErrMalformed is returned by Parse and UnmarshalText for text that can't be
// an id of the wanted kind: wrong prefix, wrong length or a foreign character.
var ErrMalformed = errors.New("malformed id")

// Crockford's alphabet leaves out i, l, o and u. The 128 bits of a UUID fill
// 26 characters of 5 bits with two bits to spare, which stand in front and are
// zero, as in TypeID and ULID: the number is the same as the UUID's.
var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

const (
	encodedLen = 26
	// The encoder wants whole bytes, so four zero ones are put in front of the
	// UUID: 160 bits are 32 characters, of which the first six say nothing.
	frontBytes = 4
	frontText  = "000000"
)

// kind names a resource by the prefix of its ids.
type kind interface{ prefix() string }

// id is the part that all kinds share. Each kind embeds it in a type of its
// own below, which is what the rest of the code uses.
type id[K kind] struct{ value uuid.UUID }

func fresh[K kind]() id[K] {
	// NewV7 fails only when the system has no randomness left to give, and
	// then nothing else here can be trusted either.
	return id[K]{uuid.Must(uuid.NewV7())}
}

// firstAt has the moment that ids begin with, 48 bits of milliseconds since 1970,
// and nothing behind it.
func firstAt[K kind](at time.Time) id[K] {
	var value uuid.UUID
	binary.BigEndian.PutUint64(value[:8], uint64(max(at.UnixMilli(), 0))<<16)
	return id[K]{value}
}

// IsZero reports whether the id was never set.
func (i id[K]) IsZero() bool { return i.value == uuid.Nil }

// String is the public form: prefix, underscore, 26 characters.
func (i id[K]) String() string {
	var k K
	return k.prefix() + "_" + encode(i.value)
}

// Time is the moment that the id was made, to the millisecond.
func (i id[K]) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(i.value[:8]) >> 16)).UTC()
}

// UUID is the form that the database keeps.
func (i id[K]) UUID() uuid.UUID { return i.value }

// MarshalText writes the public form, in JSON and in map keys.
func (i id[K]) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads the public form; it returns ErrMalformed for all else.
func (i *id[K]) UnmarshalText(text []byte) error {
	var k K
	body, ok := strings.CutPrefix(string(text), k.prefix()+"_")
	if !ok || len(body) != encodedLen {
		return ErrMalformed
	}
	raw, err := encoding.DecodeString(frontText + body)
	if err != nil || len(raw) != frontBytes+len(i.value) {
		return ErrMalformed
	}
	value := uuid.UUID(raw[frontBytes:])
	// One id has one spelling: this leaves out the line ends that the decoder
	// skips, and numbers of more than 128 bits.
	if encode(value) != body {
		return ErrMalformed
	}
	i.value = value
	return nil
}

func encode(value uuid.UUID) string {
	var padded [frontBytes + len(value)]byte
	copy(padded[frontBytes:], value[:])
	var text [len(frontText) + encodedLen]byte
	encoding.Encode(text[:], padded[:])
	return string(text[len(frontText):])
}

// Of is the id of a kind with the bytes that the database keeps.
func Of[T any, P interface {
	*T
	ScanUUID(v pgtype.UUID) error
}](raw uuid.UUID) T {
	var found T
	_ = P(&found).ScanUUID(pgtype.UUID{Bytes: raw, Valid: true}) // takes any
	return found
}

// Value gives the database driver the UUID's text form. Without it Ent's
// upserts can't return ids.
func (i id[K]) Value() (driver.Value, error) { return i.value.String(), nil }

// Scan reads what the driver returns for a uuid column.
func (i *id[K]) Scan(src any) error {
	if err := i.value.Scan(src); err != nil {
		return errors.Wrap(err, "scan id")
	}
	return nil
}

// UUIDValue and ScanUUID are Value and Scan without the text between, which is what pgx
// would otherwise write and read for each id of each row.
func (i id[K]) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: i.value, Valid: true}, nil }

// ScanUUID reads the bytes of a uuid column. Like Scan it takes null for no id.
func (i *id[K]) ScanUUID(v pgtype.UUID) error {
	i.value = v.Bytes
	return nil
}
