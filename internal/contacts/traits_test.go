package contacts_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

// samples has two different values for each trait.
var samples = map[string][2]any{
	"email":    {"ada@example.com", "eve@example.com"},
	"name":     {"Ada", "Eve"},
	"plan":     {"team", "solo"},
	"mrrCents": {json.Number("4900"), json.Number("100")},
	"currency": {"EUR", "USD"},
	"metadata": {object{"a": "b"}, object{"c": "d"}},
}

// The table of traits, the answers and the events have every trait of the contract.
func TestEveryTraitOfTheContractIsFilledOverwrittenShownAndTold(t *testing.T) {
	t.Parallel()
	contract, err := api.Contract()
	require.NoError(t, err)
	first, second := object{}, object{}
	for name := range contract.Components.Schemas["ContactTraits"].Value.Properties {
		require.Contains(t, samples, name, "a new trait needs two samples")
		first[name], second[name] = samples[name][0], samples[name][1]
	}
	app := apptest.Start(t, apptest.Options{})
	n := &tenant{app.Tenant(t)}
	n.Listen(t)
	requireTraits := func(want, got object) {
		t.Helper()
		for name, value := range want {
			require.Equal(t, value, got[name], name)
		}
	}
	requireChanges := func(from, to, told object) {
		t.Helper()
		requireTraits(plain(t, to).(object), told["contact"].(object))
		changes := told["changes"].(object)
		require.Len(t, changes, len(to))
		for name, value := range to {
			require.Equal(t, object{"from": plain(t, from[name]), "to": plain(t, value)}, changes[name], name)
		}
	}

	requireTraits(first, n.Make(t, http.MethodPost, "/v1/contacts", first))
	requireTraits(plain(t, first).(object), n.Payloads(t, event.ContactCreated)[0]["contact"].(object))
	bare := n.Identify(t, object{"externalUserId": "u-1"})
	requireTraits(first, n.Identify(t, apptest.With("u-1", first)))
	requireTraits(first, n.Identify(t, apptest.With("u-1", apptest.Without(second, "metadata"))))
	path := "/v1/contacts/" + bare["id"].(string)
	requireTraits(second, n.Patch(t, path, second))
	requireTraits(second, n.Get(t, path))
	told := n.Payloads(t, event.ContactUpdated)
	require.Len(t, told, 2)
	requireChanges(bare, first, told[0])
	requireChanges(first, second, told[1])
	made := n.Identify(t, apptest.With("u-2", first))
	requireTraits(first, n.Get(t, "/v1/contacts/"+made["id"].(string)))
	empty := apptest.Without(bare, "id", "organizationId", "externalUserId", "source", "consentBasis", "firstSeenAt", "lastSeenAt", "createdAt", "updatedAt")
	require.Len(t, empty, len(first), "an answer has the contract's traits and no others")
	requireTraits(empty, n.Patch(t, path, empty))
}

// plain returns a value as a decoder without options reads it.
func plain(t *testing.T, v any) any {
	t.Helper()
	var out any
	require.NoError(t, json.Unmarshal([]byte(encoded(t, v)), &out))
	return out
}
