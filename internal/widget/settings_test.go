package widget_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/user"
	"earshot/internal/access"
	"earshot/internal/config"
	"earshot/internal/publicid"
	"earshot/internal/seal"
	"earshot/internal/testkit/apptest"
	"earshot/internal/webhooks"
	"earshot/internal/widget"
)

func TestTheSettingsOfAWidget(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"are changed by owners and admins, and read by all members": onlyAdmins,
		"have two secrets at most, each shown once":                 twoSecrets,
		"keep no secret that can be read in the database":           sealedSecrets,
		"have two secrets at most, however many are made at once":   secretsAtOnce,
		"have the origins that were set, each once and as browsers": setOrigins,
		"report the error of every invalid origin":                  badOrigins,
		"lose no update when two clients set origins at once":       originsIfMatch,
		"of another organization aren't reached":                    foreignSettings,
	})
}

func onlyAdmins(t *testing.T, n *tenant) {
	id := n.secret(t).id
	for role, allowed := range map[string]bool{"owner": true, "admin": true, "member": false} {
		m, err := n.App.Access.EnlistMember(n.Context(t.Context()), access.NewMember{Email: "new-" + role + "@example.com", Name: role, Role: role})
		require.NoError(t, err)
		by := &tenant{n.As(t, m)}
		for _, path := range []string{"/v1/widget/secrets", "/v1/widget/origins"} {
			require.Equal(t, http.StatusOK, by.Do(t, http.MethodGet, path, nil).Status)
		}
		require.Equal(t, user.Role(role), *m.Role)
		if allowed {
			by.Make(t, http.MethodPut, "/v1/widget/origins", object{"origins": []string{"https://" + role + ".example.com"}})
			by.Make(t, http.MethodDelete, "/v1/widget/secrets/"+by.secret(t).id, nil)
			continue
		}
		unchanged := n.Watch(t)
		for _, refused := range []apptest.Answer{
			by.Do(t, http.MethodPost, "/v1/widget/secrets", nil),
			by.Do(t, http.MethodDelete, "/v1/widget/secrets/"+id, nil),
			by.Do(t, http.MethodDelete, "/v1/widget/secrets/wgs_nothing", nil),
			by.Do(t, http.MethodPut, "/v1/widget/origins", object{"origins": []string{}}),
		} {
			require.Equal(t, http.StatusForbidden, refused.Status, "%s", refused.Raw)
			require.Equal(t, "role_insufficient", refused.Details()["reason"])
		}
		unchanged(t)
	}
}

func twoSecrets(t *testing.T, n *tenant) {
	first, second := n.secret(t), n.secret(t)
	require.NotEqual(t, first.text, second.text)
	third := n.Do(t, http.MethodPost, "/v1/widget/secrets", nil)
	require.Equal(t, http.StatusConflict, third.Status, "%s", third.Raw)
	require.Equal(t, `map[current:2 limit:2 reason:widget_secret_limit resource:widgetSecret]`, fmt.Sprint(third.Details()))
	list := n.Do(t, http.MethodGet, "/v1/widget/secrets", nil)
	require.NotContains(t, string(list.Raw), "wgsec_")
	require.Len(t, list.Body["data"], 2)
	require.Equal(t, first.id, list.Body["data"].([]any)[0].(object)["id"])
	require.Equal(t, []string{first.id, second.id}, n.Walk(t, "/v1/widget/secrets", "1", func() {}))
	n.Make(t, http.MethodDelete, "/v1/widget/secrets/"+first.id, nil)
	require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodDelete, "/v1/widget/secrets/"+first.id, nil).Status)
	n.secret(t)
}

func sealedSecrets(t *testing.T, n *tenant) {
	made := n.Do(t, http.MethodPost, "/v1/widget/secrets", nil, "Idempotency-Key", "once")
	text := made.Data()["secret"].(string)
	again := n.Do(t, http.MethodPost, "/v1/widget/secrets", nil, "Idempotency-Key", "once")
	require.Equal(t, string(made.Raw), string(again.Raw))
	row := n.App.Store.Client().WidgetSecret.Query().OnlyX(n.Context(t.Context()))
	require.False(t, bytes.Contains(row.SecretSealed, []byte(text)))
	for _, table := range []string{"widget_secrets", "idempotency_records"} {
		require.NotContains(t, strings.Join(n.Contents(t, table), "\n"), fmt.Sprintf("%x", text), table)
	}
}

func secretsAtOnce(t *testing.T, n *tenant) {
	var made sync.Map
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a := n.Do(t, http.MethodPost, "/v1/widget/secrets", nil)
			if a.Status == http.StatusCreated {
				made.Store(a.Data()["id"], true)
			}
		})
	}
	all.Wait()
	count := 0
	made.Range(func(any, any) bool { count++; return true })
	require.Equal(t, 2, count)
}

func (n *tenant) origins(t *testing.T) []any {
	t.Helper()
	return n.Get(t, "/v1/widget/origins")["origins"].([]any)
}

func setOrigins(t *testing.T, n *tenant) {
	require.Empty(t, n.origins(t))
	set := n.Make(t, http.MethodPut, "/v1/widget/origins", object{"origins": []string{
		"https://app.example.com", "https://app.example.com:443", "https://app.example.com:8443", "http://localhost:03000", "http://127.0.0.1:80",
		"http://shop.localhost", "https://xn--mnchen-3ya.example",
	}})
	wanted := []any{
		"https://app.example.com", "https://app.example.com:8443", "http://localhost:3000", "http://127.0.0.1", "http://shop.localhost",
		"https://xn--mnchen-3ya.example",
	}
	require.Equal(t, wanted, set["origins"])
	require.Equal(t, wanted, n.origins(t))
	n.Make(t, http.MethodPut, "/v1/widget/origins", object{"origins": []string{}})
	require.Empty(t, n.origins(t))
}

func badOrigins(t *testing.T, n *tenant) {
	unchanged := n.Watch(t)
	for origin, rule := range map[string]string{
		"":                                    "minLength",
		"*":                                   "pattern",
		"https://*.example.com":               "pattern",
		"https://app.example.com/":            "pattern",
		"https://app.example.com/path":        "pattern",
		"https://App.example.com":             "pattern",
		"app.example.com":                     "pattern",
		"https://user@example.com":            "pattern",
		"https://münchen.example":             "pattern",
		"https://a.example https://b.example": "pattern",
		"https://a.example;script-src *":      "pattern",
		"null":                                "pattern",
		"data://x":                            "pattern",
		"https://" + strings.Repeat("a", 300): "maxLength",
		"http://app.example.com":              "invalid_origin",
		"http://localhost.example.com":        "invalid_origin",
		"https://-a.example":                  "invalid_origin",
		"https://a..example":                  "invalid_origin",
		"https://.":                           "invalid_origin",
		"https://a.example:0":                 "invalid_origin",
		"https://a.example:65536":             "invalid_origin",
		"https://" + strings.Repeat("a", 64):  "invalid_origin",
	} {
		a := n.Do(t, http.MethodPut, "/v1/widget/origins", object{"origins": []string{"https://good.example", origin}})
		require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s: %s", origin, a.Raw)
		require.Contains(t, apptest.FieldRules(a), "origins[1] "+rule, origin)
		require.False(t, slices.ContainsFunc(a.Fields(), func(f string) bool { return f == "origins[0]" }), origin)
	}
	many := make([]string, 21)
	for i := range many {
		many[i] = fmt.Sprintf("https://%d.example", i)
	}
	require.Equal(t, []string{"origins maxItems"}, apptest.FieldRules(n.Do(t, http.MethodPut, "/v1/widget/origins", object{"origins": many})))
	unchanged(t)
}

func originsIfMatch(t *testing.T, n *tenant) {
	tag := n.Do(t, http.MethodGet, "/v1/widget/origins", nil).Header.Get("ETag")
	put := func(origin, tag string) apptest.Answer {
		return n.Do(t, http.MethodPut, "/v1/widget/origins", object{"origins": []string{origin}}, "If-Match", tag)
	}
	first := put("https://a.example", tag)
	require.Equal(t, http.StatusOK, first.Status, "%s", first.Raw)
	require.Equal(t, http.StatusPreconditionFailed, put("https://b.example", tag).Status)
	require.Equal(t, []any{"https://a.example"}, n.origins(t))
	require.Equal(t, http.StatusOK, put("https://b.example", first.Header.Get("ETag")).Status)
}

func foreignSettings(t *testing.T, n *tenant) {
	theirs := &tenant{n.App.Tenant(t)}
	id := theirs.secret(t).id
	unchanged := theirs.Watch(t)
	require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodDelete, "/v1/widget/secrets/"+id, nil).Status)
	n.Make(t, http.MethodPut, "/v1/widget/origins", object{"origins": []string{"https://a.example"}})
	unchanged(t)
	require.Empty(t, theirs.origins(t))
}

func TestARotationOfTheSealingKeySealsTheSecretsAnew(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Alone: true})
	n := &tenant{app.Tenant(t)}
	s := n.secret(t)
	token := s.signed(t, n.claims(nil))
	own := app.Config.SecretKeys[0]
	with := func(keys ...config.SecretKey) *widget.Service {
		box, err := webhooks.NewBox(keys)
		require.NoError(t, err)
		return widget.New(app.Store, nil, app.Contacts, box)
	}
	fresh := config.SecretKey{ID: "fresh", Key: bytes.Repeat([]byte{7}, 32)}
	done, err := with(fresh, own).ResealSecrets(t.Context())
	require.NoError(t, err)
	require.Equal(t, seal.Resealed[publicid.WidgetSecret]{Done: 1}, done)
	require.NoError(t, with(fresh).Identify(n.asked(t), token, always), "the old key is needed no more")
	uses, err := webhooks.KeyUses(t.Context(), app.Store)
	require.NoError(t, err)
	require.Equal(t, "fresh", uses[0].Key)
	require.Equal(t, 1, uses[0].WidgetSecrets)
	done, err = with(fresh).ResealSecrets(t.Context())
	require.NoError(t, err)
	require.Zero(t, done.Done)
	done, err = with(own).ResealSecrets(t.Context())
	require.NoError(t, err)
	require.Equal(t, s.id, done.Unreadable[0].String())
}
