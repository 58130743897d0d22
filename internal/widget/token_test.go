package widget_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestAToken(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"makes the contact of its subject, with source identify and its traits": makesContact,
		"that comes again changes nothing":                                      comesAgain,
		"fills missing traits, and overwrites nothing":                          fillsOnly,
		"is refused for a bad header":                                           badHeaders,
		"is refused for bad claims":                                             badClaims,
		"may be a minute off":                                                   clockSkew,
		"is refused with a signature of others":                                 badSignatures,
		"is good with the old and the new secret until the old one is deleted":  rotation,
		"is refused when it is malformed":                                       noToken,
		"with invalid traits is refused with every error, and makes no contact": badTraits,
	})
}

func makesContact(t *testing.T, n *tenant) {
	token := n.secret(t).signed(t, n.claims(object{
		"sub": "acct-7", "email": "Ada@Example.com", "name": "Ada", "plan": "team", "mrrCents": 4900, "currency": "EUR",
		"metadata": object{"seats": 3}, "something": "else",
	}))
	require.Empty(t, n.identify(t, token))
	made := n.contacts(t)
	require.Len(t, made, 1)
	wanted := object{
		"externalUserId": "acct-7", "email": "ada@example.com", "name": "Ada", "plan": "team", "mrrCents": 4900, "currency": "EUR",
		"metadata": object{"seats": 3}, "source": "identify", "consentBasis": "sdk_identify",
	}
	for name, value := range wanted {
		require.Equal(t, fmt.Sprint(value), fmt.Sprint(made[0].(object)[name]), name)
	}
	require.Equal(t, "contact.created", n.Kept(t)[0].Type)
}

func comesAgain(t *testing.T, n *tenant) {
	token := n.secret(t).signed(t, n.claims(object{"name": "Ada"}))
	for range 3 {
		require.Empty(t, n.identify(t, token))
	}
	require.Len(t, n.contacts(t), 1)
	require.Len(t, n.Kept(t), 1)
}

func fillsOnly(t *testing.T, n *tenant) {
	s := n.secret(t)
	n.Identify(t, object{"externalUserId": "u-1", "name": "Ada Lovelace"})
	require.Empty(t, n.identify(t, s.signed(t, n.claims(object{"name": "Somebody", "email": "ada@example.com"}))))
	known := n.contacts(t)[0].(object)
	require.Equal(t, "Ada Lovelace", known["name"])
	require.Equal(t, "ada@example.com", known["email"])
}

func badHeaders(t *testing.T, n *tenant) {
	s, good := n.secret(t), n.claims(nil)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	key := []byte(s.text)
	for what, token := range map[string][2]string{
		"no algorithm":          {s.by(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good, nil), "token_bad_signature"},
		"a longer hash":         {s.by(t, jwt.SigningMethodHS512, key, good, nil), "token_bad_signature"},
		"a public key":          {s.by(t, jwt.SigningMethodRS256, private, good, nil), "token_bad_signature"},
		"an algorithm it fakes": {s.by(t, jwt.SigningMethodHS256, key, good, object{"alg": "none"}), "token_bad_signature"},
		"no kid":                {s.by(t, jwt.SigningMethodHS256, key, good, object{"kid": nil}), "token_unknown_key"},
		"a number for a kid":    {s.by(t, jwt.SigningMethodHS256, key, good, object{"kid": 1}), "token_unknown_key"},
		"an unknown kid":        {s.by(t, jwt.SigningMethodHS256, key, good, object{"kid": publicid.NewWidgetSecret().String()}), "token_unknown_key"},
		"another kind of kid":   {s.by(t, jwt.SigningMethodHS256, key, good, object{"kid": n.Organization.ID.String()}), "token_unknown_key"},
		"a path for a kid":      {s.by(t, jwt.SigningMethodHS256, key, good, object{"kid": "../../dev/null"}), "token_unknown_key"},
		"something critical":    {s.by(t, jwt.SigningMethodHS256, key, good, object{"crit": []string{"exp"}}), "token_unknown_key"},
	} {
		require.Equal(t, token[1], n.identify(t, token[0]), what)
	}
	require.Empty(t, n.contacts(t))
	require.Empty(t, n.identify(t, s.by(t, jwt.SigningMethodHS256, key, good, object{"typ": nil})))
}

func badClaims(t *testing.T, n *tenant) {
	s := n.secret(t)
	other := n.App.Tenant(t)
	for what, claims := range map[string][2]any{
		"expired":                       {object{"iat": in(-2 * time.Hour), "exp": in(-2 * time.Minute)}, "token_expired"},
		"without an end":                {object{"exp": nil}, "token_malformed"},
		"of a life too long":            {object{"exp": in(time.Hour + 10*time.Second)}, "token_lives_too_long"},
		"of a long life from long ago":  {object{"iat": in(-48 * time.Hour), "exp": in(time.Minute)}, "token_lives_too_long"},
		"of a day in another century":   {object{"exp": 1e300}, "token_expired"},
		"from before there was time":    {object{"iat": -1e300}, "token_lives_too_long"},
		"without a beginning":           {object{"iat": nil}, "token_malformed"},
		"of tomorrow":                   {object{"iat": in(24 * time.Hour), "exp": in(25 * time.Hour)}, "token_not_valid_yet"},
		"not before tomorrow":           {object{"nbf": in(24 * time.Hour)}, "token_not_valid_yet"},
		"for another audience":          {object{"aud": "another"}, "token_wrong_audience"},
		"for several others":            {object{"aud": []string{"a", "Widget"}}, "token_wrong_audience"},
		"without an audience":           {object{"aud": nil}, "token_malformed"},
		"by another issuer":             {object{"iss": other.Organization.ID.String()}, "token_wrong_issuer"},
		"without an issuer":             {object{"iss": nil}, "token_malformed"},
		"without a subject":             {object{"sub": nil}, "token_malformed"},
		"about an empty name":           {object{"sub": ""}, "token_malformed"},
		"about a number":                {object{"sub": 7}, "token_malformed"},
		"with a text for a moment":      {object{"exp": "tomorrow"}, "token_malformed"},
		"with an object for an address": {object{"email": object{}}, "token_malformed"},
		"with half a cent":              {object{"mrrCents": 0.5, "currency": "EUR"}, "token_malformed"},
	} {
		require.Equal(t, claims[1], n.identify(t, s.signed(t, n.claims(claims[0].(object)))), what)
	}
	require.Empty(t, n.contacts(t))
	require.Empty(t, n.identify(t, s.signed(t, n.claims(object{"aud": []string{"another", "widget"}, "email": nil}))))
}

func clockSkew(t *testing.T, n *tenant) {
	s := n.secret(t)
	for what, claims := range map[string]object{
		"a clock behind":  {"iat": in(-time.Hour - 30*time.Second), "exp": in(-30 * time.Second)},
		"a clock ahead":   {"iat": in(30 * time.Second), "exp": in(time.Hour + 30*time.Second)},
		"the longest one": {"iat": in(0), "exp": in(0) + 3600},
	} {
		require.Empty(t, n.identify(t, s.signed(t, n.claims(claims))), what)
	}
}

func badSignatures(t *testing.T, n *tenant) {
	s := n.secret(t)
	theirs := &tenant{n.App.Tenant(t)}
	foreign := theirs.secret(t)
	require.Equal(t, "token_unknown_key", n.identify(t, foreign.signed(t, n.claims(nil))), "a secret of another organization is none")
	require.Equal(t, "token_bad_signature", n.identify(t, secret{s.id, foreign.text}.signed(t, n.claims(nil))))
	require.Equal(t, "token_bad_signature", n.identify(t, secret{s.id, ""}.signed(t, n.claims(nil))))
	good := s.signed(t, n.claims(nil))
	parts := strings.Split(good, ".")
	other := strings.Split(s.signed(t, n.claims(object{"sub": "u-2"})), ".")
	require.Equal(t, "token_bad_signature", n.identify(t, parts[0]+"."+other[1]+"."+parts[2]))
	require.Equal(t, "token_bad_signature", n.identify(t, parts[0]+"."+parts[1]+"."))
	require.Empty(t, n.contacts(t))
	require.Empty(t, n.identify(t, good))
}

func rotation(t *testing.T, n *tenant) {
	old := n.secret(t)
	before := old.signed(t, n.claims(nil))
	fresh := n.secret(t)
	require.Empty(t, n.identify(t, before), "in the overlap both count")
	require.Empty(t, n.identify(t, fresh.signed(t, n.claims(nil))))
	n.Make(t, http.MethodDelete, "/v1/widget/secrets/"+old.id, nil)
	require.Equal(t, "token_unknown_key", n.identify(t, before), "at once, everywhere")
	require.Empty(t, n.identify(t, fresh.signed(t, n.claims(nil))))
}

func noToken(t *testing.T, n *tenant) {
	s := n.secret(t)
	encode := base64.RawURLEncoding.EncodeToString
	for _, token := range []string{
		"x", ".", "..", "a.b.c", strings.Repeat(".", 1000), "null.null.null", encode([]byte("{}")) + "." + encode([]byte("{}")) + ".",
		s.signed(t, n.claims(nil)) + "=", s.text, "Bearer " + s.signed(t, n.claims(nil)),
		encode([]byte(`{"alg":"HS256","kid":"`+s.id+`"}`)) + "." + encode([]byte(`[]`)) + ".AAAA",
		encode([]byte(`{"kid":"`+s.id+`"}`)) + "." + encode([]byte(`{}`)) + ".AAAA",
	} {
		require.Contains(t, []string{"token_malformed", "token_bad_signature", "token_unknown_key"}, n.identify(t, token), token)
	}
}

func badTraits(t *testing.T, n *tenant) {
	s := n.secret(t)
	err := n.App.Widget.Identify(n.asked(t), s.signed(t, n.claims(object{
		"sub": strings.Repeat("x", 256), "email": "nobody", "mrrCents": 5, "metadata": []int{1},
	})), always)
	told, ok := problem.As(err)
	require.True(t, ok)
	require.Equal(t, problem.Validation, told.Code)
	require.Len(t, told.Details["fields"], 4)
	require.Empty(t, n.contacts(t))
}

func TestASecretThatCanNotBeOpenedIsOurFault(t *testing.T) {
	t.Parallel()
	n := &tenant{apptest.Start(t, apptest.Options{}).Tenant(t)}
	s := n.secret(t)
	n.App.Store.Client().WidgetSecret.Update().SetSecretSealed([]byte("\x04testx")).ExecX(n.Context(t.Context()))
	err := n.App.Widget.Identify(n.asked(t), s.signed(t, n.claims(nil)), always)
	require.ErrorContains(t, err, "open "+s.id)
	_, told := problem.As(err)
	require.False(t, told)
}
