package widget

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-faster/errors"
	"github.com/golang-jwt/jwt/v5"
	"github.com/oapi-codegen/nullable"

	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

const (
	// Audience is whom a token is for. A server that signs tokens for others too, with the same
	// secret by mistake, says so.
	Audience = "widget"
	// maxLife is how long a token may be valid: it is in a page, where others may find it.
	maxLife = time.Hour
	// skew is how far the clock of the server that signs may be off.
	skew = time.Minute
)

// claims are what a token says.
type claims struct {
	jwt.RegisteredClaims
	Email    nullable.Nullable[string] `json:"email"`
	Name     nullable.Nullable[string] `json:"name"`
	Plan     nullable.Nullable[string] `json:"plan"`
	MRRCents nullable.Nullable[int64]  `json:"mrrCents"`
	Currency nullable.Nullable[string] `json:"currency"`
	Metadata json.RawMessage           `json:"metadata"`
}

func (c *claims) traits() contacts.Traits {
	return contacts.Traits{
		Email: c.Email, Name: c.Name, Plan: c.Plan, MRRCents: c.MRRCents, Currency: c.Currency, Metadata: c.Metadata,
	}
}

// Identify makes or fills the contact whom a token names, of the organization in the context. A
// token may come again for as long as it is valid, from anybody who has seen it: identify fills
// what isn't known yet, by what the organization itself has signed, so that changes nothing. May is
// asked once the token is known to be good.
func (s *Service) Identify(ctx context.Context, token string, may func() error) error {
	c, err := s.verify(ctx, token)
	if err != nil {
		return err
	}
	if err := may(); err != nil {
		return err
	}
	_, _, err = s.contacts.IdentifyContact(ctx, c.Subject, c.traits())
	return err
}

// The reasons for which a token is refused.
const (
	reasonMalformed = "token_malformed"
	reasonKey       = "token_unknown_key"
	reasonSignature = "token_bad_signature"
	reasonExpired   = "token_expired"
	reasonEarly     = "token_not_valid_yet"
	reasonLife      = "token_lives_too_long"
	reasonIssuer    = "token_wrong_issuer"
	reasonAudience  = "token_wrong_audience"
)

var reasons = map[string]string{
	reasonMalformed: "The token isn't a JWT in compact form with alg HS256, kid, sub, iss, aud, iat and exp.",
	reasonKey:       "The token's kid is not the id of a secret of this widget.",
	reasonSignature: "The token isn't signed by HS256 with the secret that its kid names.",
	reasonExpired:   "The token has expired.",
	reasonEarly:     "The token is not valid yet.",
	reasonLife:      "The token is valid for more than an hour: exp may be at most 3600 after iat.",
	reasonIssuer:    "The token's iss must be the id of the organization.",
	reasonAudience:  "The token's aud must be widget.",
}

// refused says why, and nothing of what stands in the token.
func refused(reason string) error {
	return problem.New(problem.Unauthorized, reasons[reason]).With("reason", reason)
}

// verify returns what a token says, or problem.Unauthorized with the reason.
func (s *Service) verify(ctx context.Context, token string) (*claims, error) {
	var said claims
	var failed error // ours, not the token's
	parser := jwt.NewParser(
		// The one algorithm: what a token says of itself must not choose.
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithIssuer(change.CallerOf(ctx).Organization.ID.String()), jwt.WithAudience(Audience),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(skew), jwt.WithStrictDecoding(),
	)
	_, err := parser.ParseWithClaims(token, &said, func(t *jwt.Token) (any, error) {
		var secret string
		if secret, failed = s.secretOf(ctx, t); failed != nil || secret == "" {
			return nil, errUnknownKey
		}
		return []byte(secret), nil
	})
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return nil, refused(reasonOf(err))
	case said.IssuedAt == nil || said.Subject == "":
		return nil, refused(reasonMalformed)
	case said.ExpiresAt.Sub(said.IssuedAt.Time) > maxLife:
		return nil, refused(reasonLife)
	}
	return &said, nil
}

var errUnknownKey = errors.New("unknown key")

// secretOf is the secret that a token names; "" is that there is none.
func (s *Service) secretOf(ctx context.Context, t *jwt.Token) (string, error) {
	if _, demanding := t.Header["crit"]; demanding {
		return "", nil // it wants something understood that isn't (RFC 7515, 4.1.11)
	}
	kid, _ := t.Header["kid"].(string)
	id := publicid.Read[publicid.WidgetSecret](kid)
	if id.IsZero() {
		return "", nil
	}
	return s.secret(ctx, id)
}

// reasonOf tells the reason of the library's refusal. What the error says besides may hold parts
// of the token, and goes nowhere.
func reasonOf(err error) string {
	for _, known := range []struct {
		of     error
		reason string
	}{
		{errUnknownKey, reasonKey}, {jwt.ErrTokenSignatureInvalid, reasonSignature}, {jwt.ErrTokenExpired, reasonExpired},
		{jwt.ErrTokenUsedBeforeIssued, reasonEarly}, {jwt.ErrTokenNotValidYet, reasonEarly},
		{jwt.ErrTokenInvalidIssuer, reasonIssuer}, {jwt.ErrTokenInvalidAudience, reasonAudience},
	} {
		if errors.Is(err, known.of) {
			return known.reason
		}
	}
	return reasonMalformed
}
