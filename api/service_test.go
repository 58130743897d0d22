package api_test

import (
	"context"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/testkit/apptest"
)

func TestAServiceOfATestHasAllUseCases(t *testing.T) {
	t.Parallel()
	all := reflect.ValueOf(apptest.Start(t, apptest.Options{}).UseCases)
	for i := range all.NumField() {
		if all.Type().Field(i).IsExported() && all.Field(i).Kind() == reflect.Pointer {
			require.False(t, all.Field(i).IsNil(), all.Type().Field(i).Name)
		}
	}
}

func TestTheServiceItself(t *testing.T) {
	t.Parallel()
	postgres := func(context.Context) error { return nil }
	temporal := func(context.Context) error { return errors.New("dial tcp 10.1.2.3:7233: password=hunter2") }
	o := apptest.Options{Checks: []api.Check{{Name: "postgres", Run: postgres}, {Name: "temporal", Run: temporal}}}
	together(t, apptest.Start(t, o), map[string]func(*testing.T, *apptest.App){
		"is alive though something that it needs is away":     alive,
		"is not ready and names the failed check":             notReady,
		"shows its contract":                                  showsContract,
		"explains itself without anything from other servers": docs,
		"says at / which version it is and where to go on":    frontPage,
	})
}

func alive(t *testing.T, app *apptest.App) {
	a := app.Tenant(t).Do(t, http.MethodGet, "/healthz", nil, "Authorization", "")
	require.Equal(t, http.StatusOK, a.Status)
	require.Equal(t, object{"status": "ok"}, a.Body)
}

func notReady(t *testing.T, app *apptest.App) {
	a := app.Tenant(t).Do(t, http.MethodGet, "/readyz", nil, "Authorization", "")
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.Equal(t, object{
		"status": "not ready", "checks": object{"postgres": "ok", "temporal": "unavailable"},
	}, a.Body, "no address, no credential")
}

func TestTheServiceIsReadyWhenEverythingItNeedsIsThere(t *testing.T) {
	t.Parallel()
	fine := func(context.Context) error { return nil }
	app := apptest.Start(t, apptest.Options{Checks: []api.Check{{Name: "postgres", Run: fine}}})
	a := app.Tenant(t).Do(t, http.MethodGet, "/readyz", nil)
	require.Equal(t, http.StatusOK, a.Status)
	require.Equal(t, object{"status": "ready", "checks": object{"postgres": "ok"}}, a.Body)
}

func showsContract(t *testing.T, app *apptest.App) {
	a := app.Tenant(t).Do(t, http.MethodGet, "/v1/openapi.json", nil, "Authorization", "")
	require.Equal(t, http.StatusOK, a.Status)
	require.JSONEq(t, string(load(t).json), string(a.Raw))
}

func frontPage(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	page := n.Do(t, http.MethodGet, "/", nil, "Authorization", "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	require.Equal(t, http.StatusOK, page.Status)
	require.Contains(t, page.Header.Get("Content-Type"), "text/html")
	require.Contains(t, string(page.Raw), "This is version v0.0.0-test")
	for _, found := range loaded.FindAllSubmatch(page.Raw, -1) {
		if address := string(found[1]); strings.HasPrefix(address, "/") && address != "/readyz" { // Temporal doesn't run here
			require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, address, nil, "Authorization", "").Status, address)
		}
	}
	forPrograms := n.Do(t, http.MethodGet, "/", nil, "Authorization", "", "Accept", "application/json")
	require.Equal(t, http.StatusOK, forPrograms.Status)
	require.Equal(t, "v0.0.0-test", forPrograms.Body["version"])
	require.Equal(t, "/v1/docs", forPrograms.Body["links"].(object)["guide"])
}

// loaded matches the addresses that a page loads, in its attributes and its scripts.
var loaded = regexp.MustCompile(`(?:src|href)="([^"]*)"|https?://[^"' )]+`)

func docs(t *testing.T, app *apptest.App) {
	n := app.Tenant(t)
	get := func(path string) apptest.Answer {
		a := n.Do(t, http.MethodGet, path, nil, "Authorization", "")
		require.Equal(t, http.StatusOK, a.Status, path)
		return a
	}
	page := get("/v1/docs/reference")
	require.Contains(t, page.Header.Get("Content-Type"), "text/html")
	require.Contains(t, string(page.Raw), "/v1/openapi.json")
	own := 0
	for _, found := range loaded.FindAllSubmatch(page.Raw, -1) {
		address := string(found[1])
		require.NotContains(t, string(found[0]), "://", "the page reaches for another server")
		if strings.HasPrefix(address, "/") && address != "/v1/docs/search" {
			get(address)
			own++
		}
	}
	require.GreaterOrEqual(t, own, 3, "a style and scripts: %s", page.Raw)
}
