package contacts_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oapi-codegen/nullable"
	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

const batchPath = "/v1/contacts/identify/batch"

func TestABatchOfContacts(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is written as if each had been identified alone":          batchAsAlone,
		"builds on the item before where it names a contact twice": batchRepeats,
		"reports the errors of each item and writes the rest":      batchJudges,
		"finds contacts of its organization only":                  batchFindsItsOwn,
		"is refused as a whole while bills are unpaid":             batchUnpaid,
		"answers no more than a page's worth of metadata":          batchOfLarge,
		"has its contacts in the feed in the order of its items":   batchEvents,
		"writes no votes of contacts with unchanged revenue":       batchKeepsVotes,
	})
}

func TestABatchOfContactsUnderACap(t *testing.T) {
	t.Parallel()
	togetherOn(t, apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_CONTACT_CAP_FREE=70"}}), map[string]func(*testing.T, *tenant){
		"takes as many new contacts as there is room for, the first ones": batchFillsTheCap,
		"keeps to the cap beside other batches and single requests":       batchesAtOnce,
	})
}

// batch returns the result of each item.
func (n *tenant) batch(t *testing.T, items ...object) []object {
	t.Helper()
	a := n.Do(t, http.MethodPost, batchPath, object{"contacts": items})
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	return resultsOf(t, a, len(items))
}

func resultsOf(t *testing.T, a apptest.Answer, count int) []object {
	t.Helper()
	all := a.Body["data"].([]any)
	require.Len(t, all, count)
	results := make([]object, len(all))
	for i, one := range all {
		results[i] = one.(object)
	}
	return results
}

// codes returns the codes of the results: "created" for a new contact, "" for an existing one.
func codes(results []object) []string {
	all := make([]string, len(results))
	for i, r := range results {
		if failed, ok := r["error"].(object); ok {
			all[i] = failed["code"].(string)
		} else if r["created"] == true {
			all[i] = "created"
		}
	}
	return all
}

func several(count int, name string) []object {
	items := make([]object, count)
	for i := range items {
		items[i] = object{"externalUserId": fmt.Sprintf("%s %03d", name, i)}
	}
	return items
}

func batchAsAlone(t *testing.T, n *tenant) {
	other := n.on(t, "business")
	text := nullable.NewNullableWithValue[string]
	all := contacts.Traits{
		Email: text("Ada@Example.com"), Name: text("Ada <b>"), Plan: text("pro"), MRRCents: nullable.NewNullableWithValue(int64(4900)),
		Currency: text("EUR"), Metadata: json.RawMessage(`{"z":"<a href=\"x\">&","b":1.0,"c":12345678901234567890}`),
	}
	rounds := [][]contacts.Identification{
		{{ExternalUserID: "all", Traits: all}, {ExternalUserID: "none"}, {ExternalUserID: "null", Traits: contacts.Traits{Metadata: json.RawMessage(`{"b":null}`)}}},
		{{ExternalUserID: "all", Traits: all}, {ExternalUserID: "none"}, {ExternalUserID: "null"}},
		{
			{ExternalUserID: "all", Traits: contacts.Traits{Metadata: json.RawMessage(`{"b":2,"d":"&"}`), Name: text("Bo")}},
			{ExternalUserID: "none", Traits: contacts.Traits{Email: text("bo@example.com"), Plan: text("team")}},
			{ExternalUserID: "null", Traits: all},
		},
		{{ExternalUserID: "none", Traits: all}, {ExternalUserID: "null", Traits: contacts.Traits{Metadata: json.RawMessage(`{"b":3}`)}}},
	}
	for _, of := range []*tenant{n, other} {
		of.Listen(t, event.ContactCreated, event.ContactUpdated)
		of.Listen(t, event.ContactCreated)
	}
	on := func(of *tenant) *change.Caller { return &change.Caller{Organization: of.Organization, User: of.Owner} }
	for i, items := range rounds {
		together, err := n.App.Contacts.IdentifyContacts(change.WithCaller(t.Context(), on(n)), items, nil)
		require.NoError(t, err)
		for k, item := range items {
			_, created, err := n.App.Contacts.IdentifyContact(change.WithCaller(t.Context(), on(other)), item.ExternalUserID, item.Traits)
			require.NoError(t, err)
			require.NoError(t, together[k].Err)
			require.Equal(t, created, together[k].Created, "%d: %s", i, item.ExternalUserID)
			require.Equal(t, i == 0, created)
		}
	}
	for _, table := range []string{"contacts", "events", "deliveries"} {
		require.NotEmpty(t, n.Contents(t, table))
		require.ElementsMatch(t, other.Contents(t, table), n.Contents(t, table), table)
	}
}

func batchRepeats(t *testing.T, n *tenant) {
	n.Listen(t, event.ContactCreated, event.ContactUpdated)
	results := n.batch(t,
		object{"externalUserId": "u-1", "name": "Ada"}, object{"externalUserId": "u-2"},
		object{"externalUserId": "u-1", "name": "Bo", "plan": "team"}, object{"externalUserId": "u-1"},
	)
	require.Equal(t, []string{"created", "created", "", ""}, codes(results))
	first, second, third := results[0]["contact"].(object), results[2]["contact"].(object), results[3]["contact"].(object)
	require.Nil(t, first["plan"])
	require.Equal(t, []any{"Ada", "team", first["id"]}, []any{second["name"], second["plan"], second["id"]})
	require.Equal(t, []any{"Ada", "team", first["id"]}, []any{third["name"], third["plan"], third["id"]})
	require.Len(t, n.Recorded(t), 3, "two were created, one was updated")
}

func batchJudges(t *testing.T, n *tenant) {
	results := n.batch(t,
		object{"externalUserId": "u-1", "email": "nonsense", "mrrCents": 1, "currency": "EUR"}, object{"externalUserId": "u-2"},
		object{"name": 7, "mrrCents": -1}, object{"externalUserId": "u-2", "mrrCents": 1, "currency": nil}, object{"externalUserId": "a\x00"},
	)
	require.Equal(t, []string{"ERR_VALIDATION", "created", "ERR_VALIDATION", "ERR_VALIDATION", "ERR_VALIDATION"}, codes(results))
	fields := func(i int) (names []string) {
		for _, f := range results[i]["error"].(object)["details"].(object)["fields"].([]any) {
			names = append(names, f.(object)["field"].(string))
		}
		return names
	}
	require.Equal(t, []string{"email"}, fields(0))
	require.Equal(t, []string{"currency", "externalUserId", "mrrCents", "name"}, fields(2))
	require.Equal(t, []string{"mrrCents"}, fields(3))
	require.Equal(t, []string{"externalUserId"}, fields(4))
	require.Len(t, n.Contents(t, "contacts"), 1)
	for body, field := range map[string]string{
		`{}`: "contacts", `{"contacts":[]}`: "contacts", `{"contacts":{}}`: "contacts", `{"contacts":[{"externalUserId":"x"},7]}`: "contacts[1]",
		`{"contacts":[` + strings.Repeat(`{},`, 100) + `{}]}`: "contacts",
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, batchPath, body)
		require.Equal(t, []string{field}, a.Fields(), "%.80s", body)
	}
	require.Len(t, n.Contents(t, "contacts"), 1)
}

func batchFindsItsOwn(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	require.Equal(t, []string{"created"}, codes(n.batch(t, object{"externalUserId": "u-1", "name": "Ada"})))
	theirs := stranger.batch(t, object{"externalUserId": "u-1"})
	require.Equal(t, []string{"created"}, codes(theirs))
	require.Nil(t, theirs[0]["contact"].(object)["name"])
}

func batchUnpaid(t *testing.T, n *tenant) {
	n.App.Store.Client().Organization.Update().SetBillingState("read_only").ExecX(n.Context(t.Context()))
	a := n.Do(t, http.MethodPost, batchPath, object{"contacts": []object{{"externalUserId": "u-1"}, {}}}, "Authorization", "Bearer "+n.NewKey(t, access.NewAPIKey{Name: "later", Scope: "read:write"}))
	require.Equal(t, http.StatusForbidden, a.Status, "%s", a.Raw)
	require.Equal(t, "billing_read_only", a.Details()["reason"])
}

// batchOfLarge sends 40 contacts with 256 KiB of metadata each. The first 32 have 8 MiB.
func batchOfLarge(t *testing.T, n *tenant) {
	items := several(40, "large")
	require.NotContains(t, codes(n.batch(t, items...)), "")
	_, err := n.App.Pool.Exec(t.Context(), `UPDATE contacts SET metadata = json_build_object('k', repeat('x', 256 * 1024 - 8)) WHERE organization_id = $1`,
		n.Organization.ID.UUID())
	require.NoError(t, err)
	items[39]["name"] = "Ada"
	got := codes(n.batch(t, append(items, object{"externalUserId": "new"})...))
	refused := 0
	for _, code := range got {
		if code == "ERR_PAYLOAD_TOO_LARGE" {
			refused++
		}
	}
	require.Equal(t, 40-32, refused, "%v", got)
	require.Equal(t, "created", got[40])
	require.Equal(t, []string{""}, codes(n.batch(t, items[39])), "what wasn't looked at is taken in another batch")
}

func batchEvents(t *testing.T, n *tenant) {
	n.Listen(t, event.ContactCreated, event.ContactUpdated)
	items := several(100, "new")
	require.NotContains(t, codes(n.batch(t, items...)), "")
	created := n.Payloads(t, event.ContactCreated)
	require.Len(t, created, 100)
	n.batch(t, items...)
	require.Len(t, n.Payloads(t, event.ContactCreated), 100)
	for _, item := range items {
		item["plan"] = "team"
	}
	results := n.batch(t, items...)
	for i, r := range results {
		require.Equal(t, []any{items[i]["externalUserId"], "team"}, []any{r["contact"].(object)["externalUserId"], r["contact"].(object)["plan"]})
	}
	require.Len(t, n.Payloads(t, event.ContactUpdated), 100)
}

func batchFillsTheCap(t *testing.T, n *tenant) {
	free := n.on(t, "free")
	require.NotContains(t, codes(free.batch(t, several(67, "old")...)), "")
	items := append(several(2, "old"), object{"externalUserId": "new 1"}, object{}, object{"externalUserId": "new 2"},
		object{"externalUserId": "new 3"}, object{"externalUserId": "new 4"}, object{"externalUserId": "old 001", "plan": "x"}, object{"externalUserId": "new 3"},
		object{"externalUserId": "new 5"})
	results := free.batch(t, items...)
	require.Equal(t, []string{"", "", "created", "ERR_VALIDATION", "created", "created", "ERR_PLAN_LIMIT", "", "", "ERR_PLAN_LIMIT"}, codes(results))
	single := free.Refused(t, "ERR_PLAN_LIMIT", http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "new 4"})
	require.Equal(t, single.Body["error"], results[6]["error"])
	require.Len(t, free.Contents(t, "contacts"), 70)
}

func batchesAtOnce(t *testing.T, n *tenant) {
	free := n.on(t, "free")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { free.batch(t, several(60, fmt.Sprint("of ", i%2))...) })
		all.Go(func() {
			a := free.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": fmt.Sprint("single ", i)})
			if a.Status != http.StatusCreated {
				require.Equal(t, "ERR_PLAN_LIMIT", a.Code(), "%s", a.Raw)
			}
		})
	}
	all.Wait()
	require.Len(t, free.Contents(t, "contacts"), 70)
	require.Len(t, free.Kept(t), 70, "one contact.created each")
}

func batchKeepsVotes(t *testing.T, n *tenant) {
	n.batch(t, object{"externalUserId": "ada"}, object{"externalUserId": "bo", "mrrCents": 900, "currency": "EUR"})
	post := n.Post(t)
	for _, id := range []string{"ada", "bo"} {
		n.Make(t, http.MethodPost, post+"/votes", object{"externalUserId": id})
	}
	// votes returns the transaction that last wrote the vote, and the vote's revenue.
	votes := func(id string) (written string, cents *int64) {
		err := n.App.Pool.QueryRow(t.Context(), `SELECT v.xmin::text, v.mrr_cents FROM votes v JOIN contacts c ON c.id = v.contact_id
  WHERE c.organization_id = $1 AND c.external_user_id = $2`, n.Organization.ID.UUID(), id).Scan(&written, &cents)
		require.NoError(t, err)
		return written, cents
	}
	before, _ := votes("bo")
	n.batch(t, object{"externalUserId": "ada", "mrrCents": 9900, "currency": "EUR"}, object{"externalUserId": "bo", "plan": "team"})
	after, cents := votes("bo")
	require.Equal(t, before, after)
	require.EqualValues(t, 900, *cents)
	_, cents = votes("ada")
	require.EqualValues(t, 9900, *cents)
}
