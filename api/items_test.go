package api_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// batches are the paths of the operations on many items.
var batches = []string{"/v1/contacts/identify/batch", "/v1/contacts/batch"}

// For each limit that an item breaks, its result is the error of a separate request. The item
// beside it takes effect.
func TestAnItemOfABatchIsRefusedAsARequestOfItsOwn(t *testing.T) {
	t.Parallel()
	n := newFixture(t, apptest.Start(t, apptest.Options{}))
	single := load(t).operations()["POST /v1/contacts/identify"]
	count := 0
	for name, s := range properties(single.schema()) {
		for _, f := range flaws(name, s) {
			count++
			item := object{"externalUserId": "u-9"}
			item[name] = f.value
			alone := n.Do(t, http.MethodPost, "/v1/contacts/identify", item)
			require.Equal(t, http.StatusUnprocessableEntity, alone.Status, "%s %s", f.field, f.limit)
			for _, path := range batches {
				a := n.Do(t, http.MethodPost, path, object{"contacts": []object{{"externalUserId": "u-1"}, item}})
				require.Equal(t, http.StatusOK, a.Status, "%s %s %s: %s", path, f.field, f.limit, a.Raw)
				results := a.Body["data"].([]any)
				require.Equal(t, "u-1", results[0].(object)["contact"].(object)["externalUserId"])
				require.Equal(t, alone.Body["error"], results[1].(object)["error"], "%s %s %s", path, f.field, f.limit)
			}
		}
	}
	require.Greater(t, count, 30)
	require.Equal(t, http.StatusCreated, n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "u-9"}).Status)
}

// A batch costs one request of the key's budget, however long it is.
func TestABatchCostsOneRequestOfTheBudget(t *testing.T) {
	t.Parallel()
	n := newFixture(t, apptest.Start(t, apptest.Options{}))
	left := func(path string, body any) int {
		a := n.Do(t, http.MethodPost, path, body)
		require.Less(t, a.Status, http.StatusMultipleChoices, "%s", a.Raw)
		tokens, err := strconv.Atoi(a.Header.Get("X-RateLimit-Remaining"))
		require.NoError(t, err)
		return tokens
	}
	items := make([]object, 100)
	for i := range items {
		items[i] = object{"externalUserId": "u-1"}
	}
	for _, path := range batches {
		before := left("/v1/contacts/identify", items[0])
		// Tokens come back in the meantime, so the difference may be zero.
		require.GreaterOrEqual(t, left(path, object{"contacts": items}), before-1, path)
	}
}

func TestABatchWhoseContactsAreHeldForTooLongSaysSoOfEach(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{DatabaseURL: testkit.ImpatientDatabase(t)})
	n := newFixture(t, app)
	release := locked(t, app, "SELECT FROM contacts WHERE external_user_id = 'u-1' AND organization_id = $1 FOR UPDATE", n.Organization.ID)
	held := object{"contacts": []object{{"externalUserId": "u-1"}}}
	requireUnavailable(t, "nothing took effect", n.Do(t, http.MethodPost, "/v1/contacts/identify/batch", held))
	a := n.Do(t, http.MethodPost, "/v1/contacts/identify/batch", object{"contacts": []object{{"externalUserId": "u-1"}, {"externalUserId": "u-2"}}})
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	results := a.Body["data"].([]any)
	require.Equal(t, "ERR_UNAVAILABLE", results[0].(object)["error"].(object)["code"])
	require.Equal(t, true, results[1].(object)["created"])
	release()
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodPost, "/v1/contacts/identify/batch", held).Status)
}

func TestAnUpsertWhoseContactsAreHeldForTooLongChangesNothing(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{DatabaseURL: testkit.ImpatientDatabase(t)})
	n := newFixture(t, app)
	release := locked(t, app, "SELECT FROM contacts WHERE external_user_id = 'u-1' AND organization_id = $1 FOR UPDATE", n.Organization.ID)
	body := object{"contacts": []object{{"externalUserId": "new"}, {"externalUserId": "u-1", "plan": "solo"}}}
	unchanged := n.Watch(t)
	requireUnavailable(t, "nothing took effect", n.Do(t, http.MethodPost, "/v1/contacts/batch", body))
	unchanged(t)
	release()
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodPost, "/v1/contacts/batch", body).Status)
}
