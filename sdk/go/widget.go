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

// WidgetClaims describe the person who sees a page with the widget.
type WidgetClaims struct {
	// OrganizationID is the id of your organization, org_….
	OrganizationID string
	// ExternalUserID is your own id for the person.
	ExternalUserID string
	// Optional details of the person. MRRCents needs a Currency.
	Email, Name, Plan string
	MRRCents          *int64
	Currency          string
	Metadata          map[string]any
	// ValidFor is how long the token is valid. The default is an hour, which is the maximum.
	ValidFor time.Duration
	// Now is the time from which the token is valid. The default is time.Now().
	Now time.Time
}

// WidgetToken signs a token for the widget's `identify`, with a secret from Widget.CreateSecret. Call it only
// on a server, never in a page. It returns an error if a required value is missing or ValidFor is out of
// range.
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

// segment encodes one part of a JWT.
func segment(of any) (string, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return "", fmt.Errorf("earshot: encode a widget's token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}
