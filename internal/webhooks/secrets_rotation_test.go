package webhooks_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
	"earshot/internal/publicid"
	"earshot/internal/send"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/webhooks"
)

// vault is a service with an organization and two keys: test, which seals, and k2.
type vault struct {
	*tenant
	t *testing.T
}

// vaults is the service of vault. A rotation is about the webhooks of all organizations.
var vaults = apptest.Shared{Worker: true, Turns: true, Environ: []string{
	"EARSHOT_WEBHOOK_CAP=1000", "EARSHOT_SECRET_KEYS=" + setting("test") + "," + setting("k2"),
}}

// newVault starts with a database that has no webhook.
func newVault(t *testing.T) *vault {
	t.Helper()
	app := vaults.Start(t)
	_, err := app.Pool.Exec(t.Context(), "DELETE FROM webhooks")
	require.NoError(t, err)
	return &vault{tenant: &tenant{app.Tenant(t)}, t: t}
}

// setting is the key with this name as EARSHOT_SECRET_KEYS has it.
func setting(name string) string { return name + ":" + base64.StdEncoding.EncodeToString(keyOf(name)) }

// keyOf returns the key with this name.
func keyOf(name string) []byte { return bytes.Repeat([]byte{name[1]}, 32) }

// with returns the service of a process that has these keys.
func (v *vault) with(names ...string) *webhooks.Service {
	v.t.Helper()
	var keys config.SecretKeys
	for _, name := range names {
		keys = append(keys, config.SecretKey{ID: name, Key: keyOf(name)})
	}
	box, err := webhooks.NewBox(keys)
	require.NoError(v.t, err)
	return webhooks.New(v.App.Store, nil, send.NewGuard(nil, false), box, webhooks.Settings{}, testkit.Log(v.t))
}

func (v *vault) rotate(names ...string) webhooks.Rotation {
	v.t.Helper()
	r, err := v.with(names...).RotateSecrets(v.t.Context(), func(int) {})
	require.NoError(v.t, err)
	return r
}

// register makes n webhooks and returns their ids.
func (v *vault) register(n int) []string {
	v.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = v.ID(v.t, "/v1/webhooks", object{
			"url": fmt.Sprintf("https://example.com/%d?token=t0ken", i), "events": []string{"contact.deleted"},
		})
	}
	return ids
}

// exec runs a statement about one webhook.
func (v *vault) exec(sql, webhook string) {
	v.t.Helper()
	id, err := publicid.Parse[publicid.Webhook](webhook)
	require.NoError(v.t, err)
	tag, err := v.App.Pool.Exec(v.t.Context(), sql+" WHERE id = $1", id.UUID().String())
	require.NoError(v.t, err)
	require.EqualValues(v.t, 1, tag.RowsAffected())
}

// keysInUse returns the number of webhooks that need each key.
func (v *vault) keysInUse() map[string]int {
	v.t.Helper()
	uses, err := v.with("k9").SecretKeys(v.t.Context())
	require.NoError(v.t, err)
	found := map[string]int{}
	for _, u := range uses {
		found[u.Key] = u.Webhooks
	}
	return found
}

func TestARotationSealsEverySecretAndURLAnewAndChangesNeither(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	receiver := testkit.NewReceiver(t)
	v.Register(t, receiver, "post.created") // the receiver checks signatures with the secret from now on
	v.register(120)                         // more than a page
	before := v.Do(t, http.MethodGet, "/v1/webhooks?limit=100", nil).Raw
	require.Equal(t, map[string]int{"test": 121}, v.keysInUse())

	r := v.rotate("k2", "test")
	require.Equal(t, webhooks.Rotation{KeyID: "k2", Rotated: 121}, r)
	require.Equal(t, map[string]int{"k2": 121}, v.keysInUse())
	require.Equal(t, webhooks.Rotation{KeyID: "k2"}, v.rotate("k2"), "a second time there is nothing to do, even without the old key")

	require.Equal(t, webhooks.Rotation{KeyID: "test", Rotated: 121}, v.rotate("test", "k2"))
	require.JSONEq(t, string(before), string(v.Do(t, http.MethodGet, "/v1/webhooks?limit=100", nil).Raw))
	v.Post(t)
	require.NoError(t, receiver.Await(t, 1)[0].Invalid)
}

func TestARotationThatWasStoppedGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.register(120)
	ctx, stop := context.WithCancel(t.Context())
	_, err := v.with("k2", "test").RotateSecrets(ctx, func(int) { stop() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, map[string]int{"k2": 100, "test": 20}, v.keysInUse())
	require.Equal(t, webhooks.Rotation{KeyID: "k2", Rotated: 20}, v.rotate("k2", "test"))
}

func TestARotationListsUnreadableWebhooksAndRotatesTheRest(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	ids := v.register(4)
	require.Equal(t, 4, v.rotate("k2", "test").Rotated)
	v.exec("UPDATE webhooks SET secret_sealed = '\\x0274650102'", ids[1])
	v.exec("UPDATE webhooks SET url_sealed = '\\x0274650102'", ids[3])

	r := v.rotate("k3", "k2")
	require.Equal(t, []string{ids[1], ids[3]}, []string{r.Unreadable[0].String(), r.Unreadable[1].String()})
	require.Equal(t, []int{2, 2, 2}, []int{r.Rotated, r.Left, len(r.Unreadable)})
}

func TestAWebhookThatIsChangedDuringARotationStaysChanged(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	ids := v.register(5)
	var changes sync.WaitGroup
	for _, id := range ids {
		changes.Go(func() {
			for i := range 10 {
				v.Patch(t, "/v1/webhooks/"+id, object{"url": fmt.Sprintf("https://example.com/changed/%d", i)})
			}
		})
	}
	done := make(chan struct{})
	go func() { changes.Wait(); close(done) }()
	for names := []string{"k2", "test"}; ; slices.Reverse(names) {
		select {
		case <-done:
			for _, id := range ids {
				require.Equal(t, "https://example.com/changed/9", v.Make(t, http.MethodGet, "/v1/webhooks/"+id, nil)["url"])
			}
			return
		default:
			require.Empty(t, v.rotate(names...).Unreadable)
		}
	}
}

// Rows from before the URLs were sealed hold the whole URL in plain.
func TestAWebhookFromBeforeURLsWereSealedWorksAndIsSealedByTheRotation(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	receiver := testkit.NewReceiver(t)
	id := v.Register(t, receiver, "post.created")
	v.exec("UPDATE webhooks SET url_sealed = NULL, url = '"+receiver.URL+"?token=t0ken'", id)
	require.Equal(t, map[string]int{"": 1, "test": 1}, v.keysInUse())
	require.Equal(t, receiver.URL+"?token=t0ken", v.Make(t, http.MethodGet, "/v1/webhooks/"+id, nil)["url"])
	v.Post(t)
	receiver.Await(t, 1)

	require.Equal(t, 1, v.rotate("test").Rotated)
	require.Equal(t, map[string]int{"test": 1}, v.keysInUse())
	require.NotContains(t, everything(t, v.App), "t0ken")
	require.Equal(t, receiver.URL+"?token=t0ken", v.Make(t, http.MethodGet, "/v1/webhooks/"+id, nil)["url"])
	v.Post(t)
	receiver.Await(t, 2)
}

func TestASealedURLDoesNotOpenAsASecretNorForAnotherWebhook(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	ids := v.register(2)
	v.exec("UPDATE webhooks SET secret_sealed = url_sealed", ids[0])
	v.exec("UPDATE webhooks SET url_sealed = (SELECT url_sealed FROM webhooks x WHERE x.id <> webhooks.id)", ids[1])
	r := v.rotate("k2", "test")
	require.Len(t, r.Unreadable, 2)
}

func TestAStartWarnsOfKeysThatAreMissing(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.register(3)
	require.Equal(t, 3, v.rotate("k3", "test").Rotated)
	logs := testkit.NewLogs()
	apptest.Start(t, apptest.Options{DatabaseURL: v.App.Config.DatabaseURL, Logs: logs.Logger()})
	require.Contains(t, logs.String(), `"msg":"webhooks or secrets of the widget are sealed with a key that isn't in EARSHOT_SECRET_KEYS","keyId":"k3","webhooks":3`)
	require.Equal(t, 1, strings.Count(logs.String(), "EARSHOT_SECRET_KEYS"))
}

func TestAURLThatCanNotBeOpenedIsOurFaultAndTheWebhookCanStillBeDisabled(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	id := v.register(1)[0]
	require.Equal(t, 1, v.rotate("k3", "test").Rotated)
	require.Equal(t, "ERR_INTERNAL", v.Do(t, http.MethodGet, "/v1/webhooks/"+id, nil).Code())
	require.Equal(t, http.StatusOK, v.Do(t, http.MethodGet, "/v1/webhooks/"+id+"/deliveries", nil).Status)
	enable := map[string]any{"enabled": true}
	require.Equal(t, "ERR_INTERNAL", v.Do(t, http.MethodPatch, "/v1/webhooks/"+id, enable).Code())
	for range 2 { // the second time it is already disabled
		disabled := v.Patch(t, "/v1/webhooks/"+id, object{"enabled": false})
		require.Equal(t, []any{false, "https://example.com"}, []any{disabled["enabled"], disabled["url"]})
	}
	require.Equal(t, "ERR_INTERNAL", v.Do(t, http.MethodPatch, "/v1/webhooks/"+id, enable).Code())
	mended := map[string]any{"url": "https://receiver.example.com/new"}
	require.Equal(t, http.StatusOK, v.Do(t, http.MethodPatch, "/v1/webhooks/"+id, mended).Status)
	require.Equal(t, http.StatusOK, v.Do(t, http.MethodGet, "/v1/webhooks/"+id, nil).Status)
	v.exec("UPDATE webhooks SET secret_sealed = '\\x0274650102'", id)
	require.Equal(t, false, v.Patch(t, "/v1/webhooks/"+id, object{"enabled": false})["enabled"], "without its secret too")
}
