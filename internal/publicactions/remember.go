package publicactions

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/netip"
	"time"

	"earshot/internal/publicid"
)

// Remembered is how long a browser is remembered after its user has confirmed once.
const Remembered = 30 * 24 * time.Hour

// remembered is the sealed content of a browser's cookie.
type remembered struct {
	Sender
	Of    string    `json:"of"`
	Until time.Time `json:"until"`
}

// cookieOwner is the owner name in the seal of cookies. All organizations share it, so that a forged
// cookie is detected without a query.
const cookieOwner = "visitor"

// Remember returns the cookie that identifies a visitor in an organization. Only the service can read
// and create such cookies.
func (s *Service) Remember(of publicid.Organization, v Sender) string {
	text, err := json.Marshal(remembered{v, of.String(), time.Now().Add(Remembered)})
	if err != nil {
		panic(err) // texts and a moment
	}
	return base64.RawURLEncoding.EncodeToString(s.secrets.SealApart(cookieOwner, string(text)))
}

// Recall reads a cookie of Remember that came from a network. It returns nil if the cookie is expired,
// forged, or of another organization.
func (s *Service) Recall(of publicid.Organization, kept string, from netip.Prefix) *Sender {
	found := s.recall(kept)
	if found == nil || found.Of != of.String() {
		return nil
	}
	found.From = from
	return &found.Sender
}

// Remembers reports whether a cookie is genuine and unexpired, for any organization.
func (s *Service) Remembers(kept string) bool { return s.recall(kept) != nil }

func (s *Service) recall(kept string) *remembered {
	sealed, err := base64.RawURLEncoding.DecodeString(kept)
	if err != nil {
		return nil
	}
	text, err := s.secrets.OpenApart(cookieOwner, sealed)
	if err != nil {
		return nil
	}
	var found remembered
	if json.Unmarshal([]byte(text), &found) != nil || !time.Now().Before(found.Until) {
		return nil
	}
	return &found
}

const (
	// tooQuick is less time than a person needs to read a form and fill it in.
	tooQuick = 2 * time.Second
	// formLife is how long an open form remains valid.
	formLife = 24 * time.Hour
)

// Pace classifies the time that a visitor took for a form.
type Pace int

// The paces. Unknown means an invalid or forged stamp.
const (
	Unknown Pace = iota
	TooQuick
	Usual
	TooSlow
)

// Stamp returns a signed time stamp for the form at a path. It counts for no other form.
func (s *Service) Stamp(form string, at time.Time) string {
	text := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli()))
	return base64.RawURLEncoding.EncodeToString(s.signed(form, text))
}

func (s *Service) signed(form string, text []byte) []byte {
	mac := hmac.New(sha256.New, s.formKey)
	mac.Write([]byte("stamp\x00"))
	mac.Write(text)
	mac.Write([]byte(form))
	return append(text, mac.Sum(nil)...)
}

// PaceOf returns the pace of the form at a path from its stamp.
func (s *Service) PaceOf(form, stamp string) Pace {
	raw, err := base64.RawURLEncoding.DecodeString(stamp)
	if err != nil || len(raw) != 8+sha256.Size || !hmac.Equal(raw, s.signed(form, raw[:8:8])) {
		return Unknown
	}
	switch age := time.Since(time.UnixMilli(int64(binary.BigEndian.Uint64(raw)))); {
	case age < tooQuick:
		return TooQuick
	case age > formLife:
		return TooSlow
	}
	return Usual
}
