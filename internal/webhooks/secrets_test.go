package webhooks_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestNoKeyAndNoSecretIsStoredInClear(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Alone: true})
	n := &tenant{app.Tenant(t)}
	made := n.Make(t, http.MethodPost, "/v1/webhooks", object{"url": "https://example.com/hook?token=t0ken", "events": []string{"post.created"}})
	n.Patch(t, "/v1/webhooks/"+made["id"].(string), object{"enabled": false})
	n.Patch(t, "/v1/webhooks/"+made["id"].(string), object{"enabled": true})
	n.Post(t)
	n.Get(t, "/v1/me")
	stored := everything(t, app)
	for _, known := range []string{"https://example.com", n.Key[:12], hex.EncodeToString([]byte(`{"event":"post.created"`))} {
		require.Contains(t, stored, known, "so the search would find what is there")
	}
	for _, secret := range []string{n.Key, n.ReadKey, made["secret"].(string), "_/hook", "_t0ken"} {
		_, random, _ := strings.Cut(secret, "_")
		for _, form := range []string{random, hex.EncodeToString([]byte(random)), base64.StdEncoding.EncodeToString([]byte(secret))} {
			require.NotContains(t, stored, form)
		}
	}
}

// everything returns the text of every row of every table, with bytes in hex.
func everything(t *testing.T, app *apptest.App) string {
	t.Helper()
	var query, all string
	require.NoError(t, app.Pool.QueryRow(t.Context(), `SELECT string_agg(format('SELECT x::text AS row FROM %I x', tablename), ' UNION ALL ')
		FROM pg_tables WHERE schemaname = 'public'`).Scan(&query))
	require.NoError(t, app.Pool.QueryRow(t.Context(), `SELECT string_agg(row, E'\n') FROM (`+query+`) rows`).Scan(&all))
	return all
}
