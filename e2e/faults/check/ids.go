package check

import (
	"encoding/base32"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// Outside an id is a prefix, "_" and the 128 bits of a UUID as 26 characters of
// Crockford's base32, of which the first has two zero bits in front.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// uuidOf reads an id. What is none isn't valid.
func uuidOf(id string) (u pgtype.UUID) {
	_, digits, ok := strings.Cut(id, "_")
	if !ok || len(digits) != 26 {
		return u
	}
	// Six zeros more in front make it whole bytes: 160 bits.
	raw, err := crockford.DecodeString("000000" + digits)
	if err != nil || len(raw) != 20 {
		return u
	}
	copy(u.Bytes[:], raw[4:])
	u.Valid = true
	return u
}
