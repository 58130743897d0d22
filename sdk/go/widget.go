package earshot

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// WidgetClaims say who looks at a page with the widget.
type WidgetClaims struct {
	// OrganizationID is yours, org_….
	OrganizationID string
	// ExternalUserID is your own id for the person.
	ExternalUserID string
	// What you know of the person, all of it optional. MRRCents needs a Currency.
	Email, Name, Plan string
	MRRCents          *int64
	Currency          string
	Metadata          map[string]any
	// ValidFor is an hour where it is zero, which is the most.
	ValidFor time.Duration
	// Now is the moment from which on it is valid, time.Now() where it is zero.
	Now time.Time
}

// WidgetToken signs a token for `identify` of the widget, with a secret that Widget.CreateSecret has made. It
// belongs into a server, never into a page. It fails where something is missing, or ValidFor too long.
func WidgetToken(secretID, secret string, c WidgetClaims) (string, error) {
	if secretID == "" || secret == "" || c.OrganizationID == "" || c.ExternalUserID == "" {
		return "", errors.New("earshot: a widget's token needs a secret with its id, OrganizationID and ExternalUserID")
	}
	validFor := cmp.Or(c.ValidFor, time.Hour)
	if validFor < time.Second || validFor > time.Hour {
		return "", errors.New("earshot: a widget's token is valid for a second to an hour")
	}
	now := c.Now
	if now.IsZero() {
		now = time.Now()
	}
	header, err := segment(map[string]string{"alg": "HS256", "typ": "JWT", "kid": secretID})
	if err != nil {
		return "", err
	}
	claims, err := segment(struct {
		Sub      string         `json:"sub"`
		Iss      string         `json:"iss"`
		Aud      string         `json:"aud"`
		Iat      int64          `json:"iat"`
		Exp      int64          `json:"exp"`
		Email    string         `json:"email,omitzero"`
		Name     string         `json:"name,omitzero"`
		Plan     string         `json:"plan,omitzero"`
		MRRCents *int64         `json:"mrrCents,omitzero"`
		Currency string         `json:"currency,omitzero"`
		Metadata map[string]any `json:"metadata,omitzero"`
	}{
		c.ExternalUserID, c.OrganizationID, "widget", now.Unix(), now.Add(validFor).Unix(),
		c.Email, c.Name, c.Plan, c.MRRCents, c.Currency, c.Metadata,
	})
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(header + "." + claims))
	return header + "." + claims + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// segment is one of the parts of a JWT.
func segment(of any) (string, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return "", fmt.Errorf("earshot: encode a widget's token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}
