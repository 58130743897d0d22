package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The errors of a verification. Compare them with errors.Is. Their texts
// contain no part of the secret, the header or the body. A receiver answers all
// of them except ErrMissingSecret with a 4xx status.
var (
	// ErrMissingSecret: the receiver was configured with no secret, or with
	// the bare prefix. Nothing was checked.
	ErrMissingSecret = errors.New("webhook: the secret is empty")
	// ErrMissingHeader: a delivery header is absent or empty.
	ErrMissingHeader = errors.New("webhook: a delivery header is missing")
	// ErrMalformedHeader: the signature header is not a list of name=value with
	// exactly one plain, non-negative t. It also stands for a header that is
	// longer than 1 KiB, and for a delivery header that occurs more than once.
	ErrMalformedHeader = errors.New("webhook: the signature header is malformed")
	// ErrNoMatch: no v1 signature of the header belongs to this secret,
	// timestamp and body.
	ErrNoMatch = errors.New("webhook: no signature matches")
	// ErrTimestamp: the signature is genuine, but was made more than Tolerance
	// before or after now. The reason is a repetition of an old delivery, or a
	// wrong clock.
	ErrTimestamp = errors.New("webhook: the timestamp is too far from now")
)

const (
	// maxHeader limits the work that a stranger's header can cause. Our header
	// has 80 bytes, and 148 during a rotation of the secret. 1 KiB has room for
	// a dozen more signatures.
	maxHeader = 1 << 10
	// maxDigits limits t. Twelve digits reach beyond the year 33000, and
	// arithmetic on such times does not overflow.
	maxDigits = 12
)

// Sign returns the value of the signature header for a body that is sent at the
// given time (specification, Signature rules 1 and 2). The format is "t=<unix
// seconds>,v1=<lower-case hex of HMAC-SHA256>". The key is the whole secret,
// including the prefix. The signed text is the seconds, a dot and the body as
// it travels. Fractions of a second are cut off. Sign also accepts a secret
// that Verify calls missing, but no receiver accepts the result.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + digest(secret, t, body)
}

// SignRotating is Sign for a webhook whose secret is being rotated. The header has a v1 of the new
// secret and then one of the former secret. Verify accepts it with either.
func SignRotating(secret, former string, at time.Time, body []byte) string {
	return Sign(secret, at, body) + ",v1=" + digest(former, strconv.FormatInt(at.Unix(), 10), body)
}

// Verify returns nil if the holder of secret signed exactly these body bytes
// within Tolerance of now. Otherwise the error is ErrMissingSecret,
// ErrMissingHeader, ErrMalformedHeader, ErrNoMatch or ErrTimestamp.
//
// The parts of the header may come in any order. One valid v1 among several is
// enough, so that a secret can be exchanged without a gap. Verify ignores parts
// with unknown names.
func Verify(secret, header string, body []byte, now time.Time) error {
	c, err := readClaim(secret, header)
	if err != nil {
		return err
	}
	return c.check(secret, body, now)
}

func digest(secret, t string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// claim is the content of a signature header before its verification.
type claim struct {
	t  string // as written, because the signed text has the same digits
	at time.Time
	v1 []string
}

func readClaim(secret, header string) (claim, error) {
	switch {
	case !usable(secret):
		return claim{}, ErrMissingSecret
	case header == "":
		return claim{}, fmt.Errorf("%w: %s", ErrMissingHeader, HeaderSignature)
	case len(header) > maxHeader:
		return claim{}, ErrMalformedHeader
	}
	var c claim
	for part := range strings.SplitSeq(header, ",") {
		name, value, found := strings.Cut(part, "=")
		switch {
		case !found:
			return claim{}, ErrMalformedHeader
		case name == "t" && c.t != "":
			// With two times, an attacker could have one checked and the other
			// one used.
			return claim{}, ErrMalformedHeader
		case name == "t":
			at, ok := moment(value)
			if !ok {
				return claim{}, ErrMalformedHeader
			}
			c.t, c.at = value, at
		case name == "v1":
			c.v1 = append(c.v1, value)
		}
	}
	if c.t == "" {
		return claim{}, ErrMalformedHeader
	}
	return c, nil
}

// moment parses t: decimal digits as Sign writes them, without a sign, a blank
// or a leading zero.
func moment(t string) (time.Time, bool) {
	if len(t) > maxDigits {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil || seconds < 0 || strconv.FormatInt(seconds, 10) != t {
		return time.Time{}, false
	}
	return time.Unix(seconds, 0), true
}

// check compares the text of the signatures, not the bytes that they encode,
// because the sender never writes upper-case hex (specification, Signature rule
// 2). It checks the timestamp last, so that ErrTimestamp implies a genuine
// signature.
func (c claim) check(secret string, body []byte, now time.Time) error {
	want := []byte(digest(secret, c.t, body))
	matched := false
	for _, got := range c.v1 {
		// No early exit: the duration must not reveal which signature matched.
		matched = hmac.Equal([]byte(got), want) || matched
	}
	if !matched {
		return ErrNoMatch
	}
	if age := now.Sub(c.at); age > Tolerance || age < -Tolerance {
		return ErrTimestamp
	}
	return nil
}
