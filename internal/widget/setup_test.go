package widget_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/testkit/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m) }

type object = map[string]any

// tenant is an organization with what these tests ask of it.
type tenant struct{ *apptest.Tenant }

func together(t *testing.T, tests map[string]func(*testing.T, *tenant), environ ...string) {
	t.Helper()
	apptest.Together(t, func(n *apptest.Tenant) *tenant { return &tenant{n} }, tests, environ...)
}

// secret is one of the widget with its id.
type secret struct{ id, text string }

func (n *tenant) secret(t *testing.T) secret {
	t.Helper()
	made := n.Do(t, http.MethodPost, "/v1/widget/secrets", nil)
	require.Equal(t, http.StatusCreated, made.Status, "%s", made.Raw)
	return secret{made.Data()["id"].(string), made.Data()["secret"].(string)}
}

// claims are those of a good token, with some in the place of others; nil leaves one out.
func (n *tenant) claims(with object) jwt.MapClaims {
	all := jwt.MapClaims{
		"sub": "u-1", "iss": n.Organization.ID.String(), "aud": "widget", "iat": in(0), "exp": in(time.Hour),
	}
	for name, value := range with {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

// in is a moment as tokens have it.
func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }

// signed is a token of a server that has the secret.
func (s secret) signed(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	return s.by(t, jwt.SigningMethodHS256, []byte(s.text), claims, nil)
}

func (s secret) by(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims, header object) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = s.id
	for name, value := range header {
		if token.Header[name] = value; value == nil {
			delete(token.Header, name)
		}
	}
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return text
}

// asked is the context of a request of the widget, which nobody's key makes.
func (n *tenant) asked(t *testing.T) context.Context {
	t.Helper()
	return change.WithCaller(t.Context(), &change.Caller{Organization: n.Organization})
}

// identify is what becomes of a token: "" or the reason of its refusal.
func (n *tenant) identify(t *testing.T, token string) string {
	t.Helper()
	err := n.App.Widget.Identify(n.asked(t), token, always)
	if err == nil {
		return ""
	}
	told, ok := problem.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, problem.Unauthorized, told.Code)
	require.Contains(t, told.Message, "The token")
	return told.Details["reason"].(string)
}

func (n *tenant) contacts(t *testing.T) []any {
	t.Helper()
	return n.Do(t, http.MethodGet, "/v1/contacts", nil).Body["data"].([]any)
}

// always is that the organization's allowance isn't used up.
func always() error { return nil }
