package check

import (
	"encoding/base32"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// A public id is a prefix, "_" and the 128 bits of a UUID as 26 characters of Crockford's base32.
// Two zero bits precede the first character's other three.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// uuidOf decodes an id. The result is invalid if the text isn't an id.
func uuidOf(id string) (u pgtype.UUID) {
	_, digits, ok := strings.Cut(id, "_")
	if !ok || len(digits) != 26 {
		return u
	}
	// Six more zeros in front make it whole bytes: 160 bits.
	raw, err := crockford.DecodeString("000000" + digits)
	if err != nil || len(raw) != 20 {
		return u
	}
	copy(u.Bytes[:], raw[4:])
	u.Valid = true
	return u
}
