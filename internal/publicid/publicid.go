// Package publicid has the typed ids of all resources.
//
// An id is a UUIDv7, so ids sort by creation time. The database stores the 16 bytes as a uuid. The
// public form has a prefix for the kind, an underscore, and the same bytes as 26 characters of
// lower-case Crockford base32: pst_01k9v3…. Clients treat it as opaque.
//
// There is one Go type for each kind. The compiler therefore rejects a post's id in place of a
// board's id.
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

// ErrMalformed is returned by Parse and UnmarshalText for text that can't be an id of the expected
// kind: a wrong prefix, a wrong length or an invalid character.
var ErrMalformed = errors.New("malformed id")

// Crockford's alphabet omits i, l, o and u. 26 characters of 5 bits hold the 128 bits of a UUID and
// two leading zero bits, as in TypeID and ULID. The number is therefore the same as that of the
// UUID.
var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

const (
	encodedLen = 26
	// The encoder needs whole bytes, so four zero bytes precede the UUID. The resulting 160 bits
	// are 32 characters, of which the first six are always zero.
	frontBytes = 4
	frontText  = "000000"
)

// id is the common part of all kinds.
type id struct{ value uuid.UUID }

func fresh() id {
	// NewV7 fails only if the system has no randomness left. In that case nothing else can be
	// trusted either.
	return id{uuid.Must(uuid.NewV7())}
}

// firstAt returns the smallest id of a time: 48 bits of milliseconds since 1970, followed by zeros.
func firstAt(at time.Time) id {
	var value uuid.UUID
	binary.BigEndian.PutUint64(value[:8], uint64(max(at.UnixMilli(), 0))<<16)
	return id{value}
}

// IsZero reports whether the id is unset.
func (i id) IsZero() bool { return i.value == uuid.Nil }

func (i id) text(prefix string) string { return prefix + "_" + encode(i.value) }

// Time returns the creation time of the id, to the millisecond.
func (i id) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(i.value[:8]) >> 16)).UTC()
}

// UUID returns the form that the database stores.
func (i id) UUID() uuid.UUID { return i.value }

func (i *id) parse(prefix string, text []byte) error {
	body, ok := strings.CutPrefix(string(text), prefix+"_")
	if !ok || len(body) != encodedLen {
		return ErrMalformed
	}
	raw, err := encoding.DecodeString(frontText + body)
	if err != nil || len(raw) != frontBytes+len(i.value) {
		return ErrMalformed
	}
	value := uuid.UUID(raw[frontBytes:])
	// Each id has exactly one spelling. This check rejects line ends, which the decoder skips, and
	// numbers of more than 128 bits.
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

// Of returns the id of a kind for the bytes from the database.
func Of[T any, P interface {
	*T
	ScanUUID(v pgtype.UUID) error
}](raw uuid.UUID) T {
	var found T
	_ = P(&found).ScanUUID(pgtype.UUID{Bytes: raw, Valid: true}) // accepts any value
	return found
}

// Value returns the UUID's text form for the database driver. Without it Ent's upserts can't return
// ids.
func (i id) Value() (driver.Value, error) { return i.value.String(), nil }

// Scan reads the driver's value for a uuid column.
func (i *id) Scan(src any) error {
	if err := i.value.Scan(src); err != nil {
		return errors.Wrap(err, "scan id")
	}
	return nil
}

// UUIDValue returns the bytes for a uuid column. With it and ScanUUID, pgx avoids the text form for
// each id of each row.
func (i id) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: i.value, Valid: true}, nil }

// ScanUUID reads the bytes of a uuid column. Like Scan, it reads null as the zero id.
func (i *id) ScanUUID(v pgtype.UUID) error {
	i.value = v.Bytes
	return nil
}
