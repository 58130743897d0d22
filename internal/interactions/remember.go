package interactions

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"

	"earshot/internal/publicid"
)

// Remembered is how long a browser is known after its user has confirmed once.
const Remembered = 30 * 24 * time.Hour

// remembered is what is sealed in a browser's cookie.
type remembered struct {
	Visitor
	Of    string    `json:"of"`
	Until time.Time `json:"until"`
}

// cookieOwner is whose the seal of cookies is. It is the same for all organizations, so that nobody has
// to be looked up to see that a cookie was made up.
const cookieOwner = "visitor"

// Remember is what a browser keeps to be known by in an organization. Nobody but us can read it,
// or make one.
func (s *Service) Remember(of publicid.Organization, v Visitor) string {
	text, err := json.Marshal(remembered{v, of.String(), time.Now().Add(Remembered)})
	if err != nil {
		panic(err) // texts and a moment
	}
	return base64.RawURLEncoding.EncodeToString(s.secrets.SealApart(cookieOwner, string(text)))
}

// Recall reads what Remember wrote; nil is that it is over, of another organization, or made up.
func (s *Service) Recall(of publicid.Organization, kept string) *Visitor {
	found := s.recall(kept)
	if found == nil || found.Of != of.String() {
		return nil
	}
	return &found.Visitor
}

// Remembers reports whether Remember wrote it, for whatever organization, and it isn't over.
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
	// tooQuick is less than anybody takes to read a form and to fill it in.
	tooQuick = 2 * time.Second
	// formLife is how long a form may stay open.
	formLife = 24 * time.Hour
)

// Pace is how long somebody took for a form.
type Pace int

// The paces. Unknown is a stamp that isn't ours.
const (
	Unknown Pace = iota
	TooQuick
	Usual
	TooSlow
)

// Stamp is what a form holds to tell when it was made.
func (s *Service) Stamp(at time.Time) string {
	text := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli()))
	return base64.RawURLEncoding.EncodeToString(s.signed(text))
}

func (s *Service) signed(text []byte) []byte {
	mac := hmac.New(sha256.New, s.formKey)
	mac.Write([]byte("stamp\x00"))
	mac.Write(text)
	return append(text, mac.Sum(nil)...)
}

// PaceOf reads a stamp.
func (s *Service) PaceOf(stamp string) Pace {
	raw, err := base64.RawURLEncoding.DecodeString(stamp)
	if err != nil || len(raw) != 8+sha256.Size || !hmac.Equal(raw, s.signed(raw[:8:8])) {
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
