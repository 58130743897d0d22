package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/apikey"
	"earshot/internal/access"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestAKey(t *testing.T) {
	t.Parallel()
	together(t, apptest.Start(t, apptest.Options{Alone: true}), map[string]func(*testing.T, *apptest.App){
		"is wanted by every operation":                                                   everyOperationWantsAKey,
		"is refused when it isn't one of ours":                                           badCredentials,
		"is accepted with the scheme in any case":                                        bearerHasNoCase,
		"is refused everywhere within a second of its end":                               endedKeys,
		"with the scope read reads and doesn't write":                                    scopes,
		"tells its member and organization":                                              me,
		"of a read-only organization reads, and writes only to stop or revoke something": readOnly,
	})
}

// noEntry checks everything that a 401 must have.
func noEntry(t *testing.T, a apptest.Answer, why string) {
	t.Helper()
	require.Equal(t, http.StatusUnauthorized, a.Status, "%s: %s", why, a.Raw)
	require.Equal(t, "ERR_UNAUTHORIZED", a.Code(), why)
	require.Equal(t, "Bearer", a.Header.Get("WWW-Authenticate"), why)
	require.Empty(t, a.Header.Get("X-RateLimit-Limit"), why)
}

func everyOperationWantsAKey(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	everyOperation(t, nil, func(t *testing.T, o operation) {
		noEntry(t, n.Do(t, o.method, o.filled(t, n.ids), o.request(t), "Authorization", ""), "no key")
	})
	unchanged(t)
}

func badCredentials(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	said := n.Do(t, http.MethodGet, "/v1/me", nil, "Authorization", "").Raw
	for why, header := range map[string]string{
		"no scheme": n.Key, "only the scheme": "Bearer", "nothing after the scheme": "Bearer  ",
		"another scheme": "Basic " + n.Key, "two keys": "Bearer " + n.Key + " " + n.ReadKey,
		"an unknown key": "Bearer esk_0123456789012345678901234567890123456789",
		"half a key":     "Bearer " + n.Key[:20], "another case": "Bearer " + swapCase(n.Key), "quotes": `Bearer "` + n.Key + `"`,
	} {
		a := n.Do(t, http.MethodGet, "/v1/me", nil, "Authorization", header)
		noEntry(t, a, why)
		require.Equal(t, string(said), string(a.Raw), "%s: an answer that differs tells something about keys", why)
	}
}

// swapCase changes the case of the first letter after the prefix. A digit becomes another digit.
func swapCase(key string) string {
	b := []byte(key)
	if b[4] ^= 1; b[4] >= 'A' {
		b[4] ^= 1 ^ 0x20
	}
	return string(b)
}

func bearerHasNoCase(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	for _, scheme := range []string{"bearer ", "BEARER ", "Bearer   "} {
		a := n.Do(t, http.MethodGet, "/v1/me", nil, "Authorization", scheme+n.Key)
		require.Equal(t, http.StatusOK, a.Status, scheme)
	}
}

func endedKeys(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	revoked := n.NewKey(t, access.NewAPIKey{Name: "revoked", Scope: "read"})
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, "/v1/me", nil, "Authorization", "Bearer "+revoked).Status)
	ctx := n.Context(t.Context())
	id := app.Store.Client().APIKey.Query().Where(apikey.Name("revoked")).OnlyX(ctx).ID
	_, err := app.Access.RevokeAPIKey(ctx, id, false)
	require.NoError(t, err)
	within := time.Now().Add(time.Second)
	require.Less(t, lastAccepted(t, n, revoked), within)
	end := time.Now().Add(2 * time.Second)
	expiring := n.NewKey(t, access.NewAPIKey{Name: "expiring", Scope: "read", ExpiresAt: &end})
	require.Less(t, lastAccepted(t, n, expiring), end)
}

// lastAccepted sends requests with the key until it is refused. It returns the time at which the
// last accepted request was sent.
func lastAccepted(t *testing.T, n *apptest.Tenant, key string) (last time.Time) {
	t.Helper()
	require.Eventually(t, func() bool {
		sent := time.Now()
		a := n.Do(t, http.MethodGet, "/v1/me", nil, "Authorization", "Bearer "+key)
		if a.Status == http.StatusOK {
			last = sent
			return false
		}
		noEntry(t, a, "ended")
		return true
	}, testkit.Wait, testkit.Tick)
	return last
}

func scopes(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	everyOperation(t, nil, func(t *testing.T, o operation) {
		a := n.Do(t, o.method, o.filled(t, n.ids), o.request(t), "Authorization", "Bearer "+n.ReadKey)
		if !o.writes() {
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
			return
		}
		require.Equal(t, http.StatusForbidden, a.Status)
		require.Equal(t, "ERR_SCOPE_INSUFFICIENT", a.Code())
		require.Equal(t, "read:write", a.Details()["required"])
		require.NotEmpty(t, a.Header.Get("X-RateLimit-Remaining"), "the refused request was authenticated")
	})
	unchanged(t)
}

func me(t *testing.T, app *apptest.App) {
	n := app.TenantOn(t, "pro")
	data := n.Make(t, http.MethodGet, "/v1/me", nil)
	require.Equal(t, object{
		"id": n.Organization.ID.String(), "name": "Acme", "slug": nil, "plan": "pro", "billingState": "active",
	}, data["organization"])
	require.Equal(t, object{"id": n.Owner.ID.String(), "name": "Olive Owner", "email": "owner@example.com", "role": "owner"}, data["user"])
	key := data["apiKey"].(object)
	require.Equal(t, "read:write", key["scope"])
	require.Equal(t, n.Key[:12], key["prefix"])
	require.NotContains(t, key, "hash")
}

func readOnly(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	app.Store.Client().Organization.Update().SetBillingState("read_only").ExecX(n.Context(t.Context()))
	// A new key, because the service remembers the state of a used one.
	key := "Bearer " + n.NewKey(t, access.NewAPIKey{Name: "new", Scope: "read:write"})
	unchanged := n.Watch(t)
	everyOperation(t, nil, func(t *testing.T, o operation) {
		if o.OperationID == "revokeApiKey" || o.OperationID == "deleteWidgetSecret" {
			return // always allowed
		}
		a := n.Do(t, o.method, o.filled(t, n.ids), o.request(t), "Authorization", key)
		if !o.writes() {
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
			return
		}
		require.Equal(t, http.StatusForbidden, a.Status, "%s", a.Raw)
		require.Equal(t, "ERR_FORBIDDEN", a.Code())
		require.Equal(t, "billing_read_only", a.Details()["reason"])
	})
	hook := "/v1/webhooks/" + n.ids["webhookId"]
	for _, body := range []object{
		{"enabled": true},
		{"enabled": false, "events": []string{"post.created"}},
		{"enabled": false, "description": nil},
		{"enabled": false, "metadata": object{}},
		{"events": []string{"post.created"}},
	} {
		require.Equal(t, "ERR_FORBIDDEN", n.Do(t, http.MethodPatch, hook, body, "Authorization", key).Code(), "%v", body)
	}
	unchanged(t)
	disabled := n.Do(t, http.MethodPatch, hook, object{"enabled": false}, "Authorization", key)
	require.Equal(t, http.StatusOK, disabled.Status, "%s", disabled.Raw)
	require.Equal(t, false, disabled.Data()["enabled"])
	gone := n.Do(t, http.MethodDelete, "/v1/widget/secrets/"+n.ids["secretId"], nil, "Authorization", key)
	require.Equal(t, http.StatusOK, gone.Status, "%s", gone.Raw)
	revoked := n.Do(t, http.MethodDelete, "/v1/api-keys/"+n.ids["keyId"], nil, "Authorization", key)
	require.Equal(t, http.StatusOK, revoked.Status, "%s", revoked.Raw)
	for _, k := range n.Do(t, http.MethodGet, "/v1/api-keys", nil, "Authorization", key).Body["data"].([]any) {
		require.Equal(t, k.(object)["id"] == n.ids["keyId"], k.(object)["revokedAt"] != nil)
	}
}
