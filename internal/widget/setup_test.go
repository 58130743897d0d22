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

// tenant is an organization with the helpers of these tests.
type tenant struct{ *apptest.Tenant }

func together(t *testing.T, tests map[string]func(*testing.T, *tenant)) {
	t.Helper()
	apptest.Together(t, apptest.Start(t, apptest.Options{}), func(_ *testing.T, n *apptest.Tenant) *tenant { return &tenant{n} }, tests)
}

// secret is a secret of the widget with its id.
type secret struct{ id, text string }

func (n *tenant) secret(t *testing.T) secret {
	t.Helper()
	made := n.Do(t, http.MethodPost, "/v1/widget/secrets", nil)
	require.Equal(t, http.StatusCreated, made.Status, "%s", made.Raw)
	return secret{made.Data()["id"].(string), made.Data()["secret"].(string)}
}

// claims returns the claims of a valid token with some of them replaced. A nil value removes a
// claim.
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

// in returns a time in the format of tokens.
func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }

// signed returns a token that is signed with the secret.
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

// asked returns the context of a request of the widget, which has no API key.
func (n *tenant) asked(t *testing.T) context.Context {
	t.Helper()
	return change.WithCaller(t.Context(), &change.Caller{Organization: n.Organization})
}

// identify returns "" or the reason why a token is refused.
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

// always allows every request within the organization's limit.
func always() error { return nil }
