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
		return nil, reasonOf(err).Problem()
	case said.IssuedAt == nil || said.Subject == "":
		return nil, problem.TokenMalformed.Problem()
	case said.ExpiresAt.Sub(said.IssuedAt.Time) > maxLife:
		return nil, problem.TokenLivesLong.Problem()
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
func reasonOf(err error) *problem.Reason {
	for _, known := range []struct {
		of     error
		reason *problem.Reason
	}{
		{errUnknownKey, problem.TokenUnknownKey}, {jwt.ErrTokenSignatureInvalid, problem.TokenBadSignature}, {jwt.ErrTokenExpired, problem.TokenExpired},
		{jwt.ErrTokenUsedBeforeIssued, problem.TokenNotValidYet}, {jwt.ErrTokenNotValidYet, problem.TokenNotValidYet},
		{jwt.ErrTokenInvalidIssuer, problem.TokenWrongIssuer}, {jwt.ErrTokenInvalidAudience, problem.TokenWrongAudience},
	} {
		if errors.Is(err, known.of) {
			return known.reason
		}
	}
	return problem.TokenMalformed
}
