package contacts_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

const upsertPath = "/v1/contacts/batch"

func TestAnUpsertOfContacts(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"overwrites a changed plan and revenue":                              upsertOverwrites,
		"writes the same rows as a POST or a PATCH for each item":            upsertAsAlone,
		"changes nothing if each contact has the traits already":             upsertNothing,
		"builds on the item before if an id occurs twice":                    upsertRepeats,
		"reports the errors of each item and writes the others":              upsertJudges,
		"finds contacts of its organization only":                            upsertFindsItsOwn,
		"answers a repeated Idempotency-Key with the first answer":           upsertOnce,
		"skips the items behind 4 MiB of metadata":                           upsertOfLarge,
		"leaves an audit line for each contact that it creates or changes":   upsertAudited,
		"that runs beside others with the same contacts creates each once":   upsertsAtOnce,
		"is refused for an organization in the read-only billing state":      upsertUnpaid,
		"records events in the order of its items, not in that of their ids": upsertEvents,
	})
}

func TestAnUpsertOfContactsUnderACap(t *testing.T) {
	t.Parallel()
	togetherOn(t, capped.Start(t), map[string]func(*testing.T, *tenant){
		"creates as many contacts as there is room for, the first ones": upsertFillsTheCap,
	})
}

// upsert returns the result of each item.
func (n *tenant) upsert(t *testing.T, items ...object) []object {
	t.Helper()
	a := n.Do(t, http.MethodPost, upsertPath, object{"contacts": items})
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	return resultsOf(t, a, len(items))
}

func upsertOverwrites(t *testing.T, n *tenant) {
	n.Person(t, "u-1")
	n.Listen(t, event.ContactUpdated)
	results := n.upsert(t, object{"externalUserId": "u-1", "plan": "business", "mrrCents": 12900, "currency": "USD", "name": nil})
	require.Equal(t, []string{""}, codes(results))
	now := results[0]["contact"].(object)
	require.Equal(t, "[business 12900 USD <nil> ada@example.com]", fmt.Sprint([]any{now["plan"], now["mrrCents"], now["currency"], now["name"], now["email"]}))
	changes, count := n.changes(t)
	require.Equal(t, 1, count)
	require.JSONEq(t, `{"plan":{"from":"team","to":"business"},"mrrCents":{"from":4900,"to":12900},
		"currency":{"from":"EUR","to":"USD"},"name":{"from":"Ada","to":null}}`, changes)
}

func upsertAsAlone(t *testing.T, n *tenant) {
	other := n.on(t, "business")
	rounds := [][]object{
		{apptest.With("all", apptest.EveryTrait), {"externalUserId": "none"}, {"externalUserId": "null", "email": nil, "mrrCents": nil, "currency": nil}},
		{{"externalUserId": "all"}, {"externalUserId": "none", "plan": nil}, apptest.With("null", apptest.EveryTrait)},
		{
			{"externalUserId": "none", "email": " Bo@Example.com", "mrrCents": 100, "currency": "EUR"}, {"externalUserId": "new", "name": "Bo"},
			{"externalUserId": "all", "email": nil, "plan": "solo", "metadata": object{}},
		},
	}
	for _, of := range []*tenant{n, other} {
		of.Listen(t, event.ContactCreated, event.ContactUpdated)
		of.Listen(t, event.ContactCreated)
	}
	for i, items := range rounds {
		for k, result := range n.upsert(t, items...) {
			require.Equal(t, other.createOrPatch(t, items[k]), result["created"], "%d: %v", i, items[k])
		}
	}
	for _, table := range []string{"contacts", "events", "deliveries"} {
		require.NotEmpty(t, n.Contents(t, table))
		require.ElementsMatch(t, other.Contents(t, table), n.Contents(t, table), table)
	}
}

// createOrPatch makes the request that a client without the batch makes for an item.
func (n *tenant) createOrPatch(t *testing.T, item object) (created bool) {
	t.Helper()
	found := n.Do(t, http.MethodGet, "/v1/contacts?externalUserId="+url.QueryEscape(item["externalUserId"].(string)), nil).Body["data"].([]any)
	if len(found) == 0 {
		n.Make(t, http.MethodPost, "/v1/contacts", item)
		return true
	}
	n.Patch(t, "/v1/contacts/"+found[0].(object)["id"].(string), item)
	return false
}

func upsertNothing(t *testing.T, n *tenant) {
	n.Person(t, "u-1")
	n.Identify(t, object{"externalUserId": "u-2"})
	n.Listen(t)
	unchanged := n.Watch(t)
	results := n.upsert(t, apptest.With("u-1", apptest.EveryTrait), object{"externalUserId": "u-2"}, object{"externalUserId": "u-2", "name": nil})
	require.Equal(t, []string{"", "", ""}, codes(results))
	unchanged(t)
}

func upsertRepeats(t *testing.T, n *tenant) {
	n.Listen(t, event.ContactCreated, event.ContactUpdated)
	results := n.upsert(t,
		object{"externalUserId": "u-1", "name": "Ada"}, object{"externalUserId": "u-2"},
		object{"externalUserId": "u-1", "name": "Bo", "plan": "team"}, object{"externalUserId": "u-1", "name": nil},
	)
	require.Equal(t, []string{"created", "created", "", ""}, codes(results))
	var names []any
	for _, i := range []int{0, 2, 3} {
		one := results[i]["contact"].(object)
		require.Equal(t, results[0]["contact"].(object)["id"], one["id"])
		names = append(names, one["name"], one["plan"])
	}
	require.Equal(t, []any{"Ada", nil, "Bo", "team", nil, "team"}, names)
	require.Len(t, n.Recorded(t), 4, "two were created, one was updated twice")
}

func upsertJudges(t *testing.T, n *tenant) {
	n.Person(t, "u-1")
	results := n.upsert(t,
		object{"externalUserId": "u-1", "email": "nonsense", "plan": "solo"}, object{"externalUserId": "u-2"}, object{"plan": "solo"},
		object{"externalUserId": "u-1", "mrrCents": 1}, object{"externalUserId": "u-1", "metadata": nil}, object{"externalUserId": nil},
		object{"externalUserId": "u-1", "name": "Bo"},
	)
	const invalid = "ERR_VALIDATION"
	require.Equal(t, []string{invalid, "created", invalid, invalid, invalid, invalid, ""}, codes(results))
	last := results[6]["contact"].(object)
	require.Equal(t, []any{"Bo", "team"}, []any{last["name"], last["plan"]}, "an item with an error changes nothing")
	for body, field := range map[string]string{
		`{}`: "contacts", `{"contacts":[]}`: "contacts", `{"contacts":[{"externalUserId":"x"},7]}`: "contacts[1]",
	} {
		require.Equal(t, []string{field}, n.Refused(t, invalid, http.MethodPost, upsertPath, body).Fields(), body)
	}
	n.Refused(t, invalid, http.MethodPost, upsertPath, object{"contacts": several(101, "many")})
	require.Len(t, n.Contents(t, "contacts"), 2)
}

func upsertFindsItsOwn(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	require.Equal(t, []string{"created"}, codes(n.upsert(t, object{"externalUserId": "u-1", "name": "Ada"})))
	theirs := stranger.upsert(t, object{"externalUserId": "u-1"})
	require.Equal(t, []string{"created"}, codes(theirs))
	require.Nil(t, theirs[0]["contact"].(object)["name"])
}

func upsertOnce(t *testing.T, n *tenant) {
	n.Person(t, "u-1")
	body := object{"contacts": []object{{"externalUserId": "u-1", "plan": "solo"}, {"externalUserId": "u-2"}, {"name": "Bo"}}}
	first := n.Do(t, http.MethodPost, upsertPath, body, "Idempotency-Key", "sync-1")
	require.Equal(t, []string{"", "created", "ERR_VALIDATION"}, codes(resultsOf(t, first, 3)))
	n.upsert(t, object{"externalUserId": "u-1", "plan": "pro"})
	unchanged := n.Watch(t)
	again := n.Do(t, http.MethodPost, upsertPath, body, "Idempotency-Key", "sync-1")
	require.Equal(t, string(first.Raw), string(again.Raw))
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	changed := n.Do(t, http.MethodPost, upsertPath, object{"contacts": several(1, "other")}, "Idempotency-Key", "sync-1")
	require.Equal(t, "ERR_IDEMPOTENCY_MISMATCH", changed.Code(), "%s", changed.Raw)
	unchanged(t)
}

// upsertOfLarge sends 20 contacts with 256 KiB of stored metadata each.
func upsertOfLarge(t *testing.T, n *tenant) {
	items := several(20, "large")
	n.upsert(t, items...)
	_, err := n.App.Pool.Exec(t.Context(), `UPDATE contacts SET metadata = json_build_object('k', repeat('x', 256 * 1024 - 12)) WHERE organization_id = $1`,
		n.Organization.ID.UUID())
	require.NoError(t, err)
	for _, item := range items {
		item["plan"] = "team"
	}
	got := codes(n.upsert(t, items...))
	skipped := slices.Index(got, "ERR_PAYLOAD_TOO_LARGE")
	require.GreaterOrEqual(t, skipped, 16, "%v", got)
	require.Equal(t, slices.Repeat([]string{"ERR_PAYLOAD_TOO_LARGE"}, 20-skipped), got[skipped:])
	require.Equal(t, slices.Repeat([]string{""}, 20-skipped), codes(n.upsert(t, items[skipped:]...)), "another list has room for them")
}

func upsertAudited(t *testing.T, n *tenant) {
	before := len(n.Contents(t, "audit_entries"))
	n.upsert(t, object{"externalUserId": "u-1"}, object{"externalUserId": "u-2"}, object{})
	n.upsert(t, object{"externalUserId": "u-1", "name": "Ada"}, object{"externalUserId": "u-2"})
	a := n.Do(t, http.MethodGet, "/v1/audit?actions=upsertContacts", nil)
	require.Len(t, a.Body["data"], 3, "%s", a.Raw)
	require.Len(t, n.Contents(t, "audit_entries"), before+3)
}

func upsertsAtOnce(t *testing.T, n *tenant) {
	n.Listen(t, event.ContactCreated)
	items := several(20, "of all")
	reversed := slices.Clone(items)
	slices.Reverse(reversed)
	var all sync.WaitGroup
	for _, order := range [][]object{items, reversed, items, reversed} {
		all.Go(func() { require.NotContains(t, codes(n.upsert(t, order...)), "ERR_INTERNAL") })
		all.Go(func() { require.NotContains(t, codes(n.batch(t, order...)), "ERR_INTERNAL") })
	}
	all.Wait()
	require.Len(t, n.Contents(t, "contacts"), 20)
	require.Len(t, n.Payloads(t, event.ContactCreated), 20)
}

func upsertUnpaid(t *testing.T, n *tenant) {
	n.App.Store.Client().Organization.Update().SetBillingState("read_only").ExecX(n.Context(t.Context()))
	a := n.Do(t, http.MethodPost, upsertPath, object{"contacts": []object{{"externalUserId": "u-1"}, {}}},
		"Authorization", "Bearer "+n.NewKey(t, access.NewAPIKey{Name: "later", Scope: "read:write"}))
	require.Equal(t, http.StatusForbidden, a.Status, "%s", a.Raw)
	require.Equal(t, "billing_read_only", a.Details()["reason"])
}

func upsertEvents(t *testing.T, n *tenant) {
	n.Listen(t, event.ContactCreated)
	n.upsert(t, object{"externalUserId": "b"}, object{"externalUserId": "c"}, object{"externalUserId": "a"})
	var ids []any
	for _, e := range n.Do(t, http.MethodGet, "/v1/events?types=contact.created", nil).Body["data"].([]any) {
		ids = append(ids, e.(object)["payload"].(object)["contact"].(object)["externalUserId"])
	}
	require.Equal(t, []any{"b", "c", "a"}, ids)
}

func upsertFillsTheCap(t *testing.T, n *tenant) {
	free := n.on(t, "free")
	free.Identify(t, object{"externalUserId": "old"})
	items := []object{
		{"externalUserId": "z"}, {}, {"externalUserId": "old", "plan": "x"}, {"externalUserId": "y"}, {"externalUserId": "a"},
		{"externalUserId": "z", "plan": "x"}, {"externalUserId": "a"},
	}
	results := free.upsert(t, items...)
	require.Equal(t, []string{"created", "ERR_VALIDATION", "", "created", "ERR_PLAN_LIMIT", "", "ERR_PLAN_LIMIT"}, codes(results))
	single := free.Refused(t, "ERR_PLAN_LIMIT", http.MethodPost, "/v1/contacts", object{"externalUserId": "a"})
	require.Equal(t, single.Body["error"], results[4]["error"])
	require.Len(t, free.Contents(t, "contacts"), 3)
}
