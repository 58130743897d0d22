package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

const bounceSecret = "a secret of the operator, long enough"

func TestTheOperatorTellsOfBouncedAddresses(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_MAIL_BOUNCE_SECRET=" + bounceSecret}}).Tenant(t)
	n.Make(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "u-1", "email": "gone@example.com"})
	tell := func(body any, secret string) apptest.Answer {
		return n.Do(t, http.MethodPost, "/mail/bounces", body, "Authorization", "Bearer "+secret)
	}
	for _, wrong := range []string{"", "x", n.Key, bounceSecret + "x"} {
		a := tell(object{"addresses": []string{"gone@example.com"}}, wrong)
		require.Equal(t, http.StatusUnauthorized, a.Status)
		require.Equal(t, "ERR_UNAUTHORIZED", a.Code())
	}
	for body, fields := range map[string][]string{
		"{": {""}, "[]": {""}, `{"addresses": "a@example.com"}`: {""}, "{}": {"addresses"}, `{"addresses": []}`: {"addresses"},
		`{"addresses": ["gone@example.com", "none", "two words"]}`: {"addresses[1]", "addresses[2]"},
	} {
		a := tell(body, bounceSecret)
		require.Equal(t, http.StatusUnprocessableEntity, a.Status, body)
		require.Equal(t, fields, a.Fields(), body)
	}
	require.Equal(t, http.StatusRequestEntityTooLarge, tell(`{"addresses": ["`+strings.Repeat("a", 1<<20)+`"]}`, bounceSecret).Status)
	require.Equal(t, false, suppressed(t, n), "what is refused changes nothing")
	a := tell(object{"addresses": []string{" Gone@Example.com", "gone@example.com", "other@example.com"}}, bounceSecret)
	require.Equal(t, http.StatusOK, a.Status, string(a.Raw))
	require.JSONEq(t, `{"suppressed": 2}`, string(a.Raw))
	require.JSONEq(t, `{"suppressed": 0}`, string(tell(object{"addresses": []string{"gone@example.com"}}, bounceSecret).Raw), "again changes nothing")
	require.Equal(t, true, suppressed(t, n))
}

func suppressed(t *testing.T, n *apptest.Tenant) any {
	t.Helper()
	found := n.Do(t, http.MethodGet, "/v1/subscribers", nil).Body["data"].([]any)
	require.Len(t, found, 1)
	return found[0].(object)["suppressed"]
}

func TestTheBounceEndpointIsAbsentWithoutASecret(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodPost, "/mail/bounces", object{"addresses": []string{"a@example.com"}}).Status)
}

func TestOnlyContactsThatMayBeMailedAreSubscribers(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	n.Make(t, http.MethodPost, "/v1/contacts", object{"email": "admin@example.com"})
	n.Make(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "no-address"})
	var wanted []any
	for _, id := range []string{"u-1", "u-2", "u-3"} {
		made := n.Make(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": id, "email": id + "@example.com"})
		wanted = append([]any{made["id"]}, wanted...)
	}
	var got []any
	path := "/v1/subscribers?limit=2"
	for range 2 {
		page := n.Do(t, http.MethodGet, path, nil)
		for _, one := range page.Body["data"].([]any) {
			s := one.(object)
			require.Equal(t, []any{true, false, false}, []any{s["statusUpdates"], s["changelog"], s["suppressed"]})
			got = append(got, s["contactId"])
		}
		if next, ok := page.Body["nextCursor"].(string); ok {
			path = "/v1/subscribers?limit=2&cursor=" + next
		}
	}
	require.Equal(t, wanted, got, "newest first, and nobody else")
}
