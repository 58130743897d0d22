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
	// Audience is the audience of a token. It excludes tokens for other services that a server
	// signs with the same secret by mistake.
	Audience = "widget"
	// maxLife bounds the life of a token, because a token is in a page and may be stolen there.
	maxLife = time.Hour
	// skew is the tolerated deviation of the signing server's clock.
	skew = time.Minute
)

// claims are the claims of a token.
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

// Identify creates or completes the contact that a token names, in the organization of the context.
// A valid token may arrive again from any client that has seen it. A repetition is harmless,
// because identify only fills in missing traits, and the organization has signed these. Identify
// calls may after it has verified the token.
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

// refused returns the reason and no content of the token.
func refused(reason string) error {
	return problem.New(problem.Unauthorized, reasons[reason]).With("reason", reason)
}

// verify returns the claims of a token, or problem.Unauthorized with the reason.
func (s *Service) verify(ctx context.Context, token string) (*claims, error) {
	var said claims
	var failed error // an error of ours, not of the token
	parser := jwt.NewParser(
		// Only one algorithm is valid, because a token must not choose its own.
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

// secretOf returns the secret that a token names; "" if there is none.
func (s *Service) secretOf(ctx context.Context, t *jwt.Token) (string, error) {
	if _, demanding := t.Header["crit"]; demanding {
		return "", nil // it requires an extension that is not supported (RFC 7515, 4.1.11)
	}
	kid, _ := t.Header["kid"].(string)
	id := publicid.Read[publicid.WidgetSecret](kid)
	if id.IsZero() {
		return "", nil
	}
	return s.secret(ctx, id)
}

// reasonOf maps an error of the library to a reason. The text of the error is dropped, because it
// may contain parts of the token.
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
