package contacts_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

// TestIdentify covers the specification's Identify rules 1 to 7. Rule 3 is about PATCH.
func TestIdentify(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"rule 1: inserts with 201 and updates with 200":                 insertsThenUpdates,
		"rule 1: finds contacts of its organization only":               findsItsOwn,
		"rule 2: sets traits that are null":                             setsWhatIsNull,
		"rule 2: keeps traits when a value differs, is omitted or null": keepsWhatIsSet,
		"rule 2: takes mrrCents and currency as one trait":              amountWithCurrency,
		"rule 2: adds metadata key by key":                              metadataByKey,
		"rule 4: without a change only lastSeenAt advances":             onlySeen,
		"rule 5: repeated gives the same contact":                       idempotent,
		"rule 6: needs a key that may write":                            needsWriting,
		"rule 7: refuses a trait that breaks its limit":                 traitLimits,
		"rule 7: takes traits up to their limits":                       traitsAtTheirLimits,
		"trims and lower-cases an address, trims name and plan":         normalises,
		"keeps metadata as it was sent":                                 metadataAsSent,
		"leaves out metadata that doesn't fit into 100 keys":            metadataGrows,
		"leaves out metadata that doesn't fit into 256 KiB":             metadataGrowsLarge,
		"fills a key of metadata that is null, in its place":            metadataNull,
		"tells both sides of every trait that it changed":               tellsChanges,
	})
}

func insertsThenUpdates(t *testing.T, n *tenant) {
	body := object{"externalUserId": "u-1"}
	first := n.Do(t, http.MethodPost, "/v1/contacts/identify", body)
	require.Equal(t, http.StatusCreated, first.Status)
	require.Equal(t, "identify", first.Data()["source"])
	require.Equal(t, "sdk_identify", first.Data()["consentBasis"])
	again := n.Do(t, http.MethodPost, "/v1/contacts/identify", body)
	require.Equal(t, http.StatusOK, again.Status)
	require.Equal(t, first.Data()["id"], again.Data()["id"])
	other := n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "U-1"})
	require.Equal(t, http.StatusCreated, other.Status, "the id is the caller's, letter by letter")
}

func findsItsOwn(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	body := object{"externalUserId": "u-1"}
	mine := n.Identify(t, body)
	theirs := stranger.Do(t, http.MethodPost, "/v1/contacts/identify", body)
	require.Equal(t, http.StatusCreated, theirs.Status)
	require.NotEqual(t, mine["id"], theirs.Data()["id"])
}

func traitsOf(contact object) object {
	traits := object{}
	for name := range apptest.EveryTrait {
		traits[name] = contact[name]
	}
	return traits
}

func setsWhatIsNull(t *testing.T, n *tenant) {
	empty := traitsOf(n.Identify(t, object{"externalUserId": "u-1"}))
	require.Equal(t, object{"email": nil, "name": nil, "plan": nil, "mrrCents": nil, "currency": nil, "metadata": object{}}, empty)
	filled := n.Identify(t, apptest.With("u-1", apptest.EveryTrait))
	require.Equal(t, fmt.Sprint(apptest.EveryTrait), fmt.Sprint(traitsOf(filled)))
	require.Equal(t, filled, apptest.Without(n.Get(t, "/v1/contacts/"+filled["id"].(string)), "postCount", "voteCount", "commentCount"))
}

func keepsWhatIsSet(t *testing.T, n *tenant) {
	n.Identify(t, apptest.With("u-1", apptest.EveryTrait))
	n.Listen(t)
	for _, traits := range []object{
		{},
		{"email": "eve@example.com", "name": "Eve", "plan": "solo", "mrrCents": 1, "currency": "USD", "metadata": object{"seats": 1}},
		{"email": nil, "name": nil, "plan": nil, "mrrCents": nil, "currency": nil, "metadata": object{}},
		{"metadata": object{"seats": nil}},
	} {
		require.Equal(t, fmt.Sprint(apptest.EveryTrait), fmt.Sprint(traitsOf(n.Identify(t, apptest.With("u-1", traits)))), "%v", traits)
	}
	require.Empty(t, n.Recorded(t))
}

func amountWithCurrency(t *testing.T, n *tenant) {
	n.Identify(t, object{"externalUserId": "u-1", "mrrCents": 0, "currency": "EUR"})
	kept := n.Identify(t, object{"externalUserId": "u-1", "mrrCents": 500, "currency": "USD"})
	require.Equal(t, "0 EUR", fmt.Sprint(kept["mrrCents"], " ", kept["currency"]), "0 is a value")
}

func metadataByKey(t *testing.T, n *tenant) {
	n.Identify(t, object{"externalUserId": "u-1", "metadata": object{"a": 1, "b": nil}})
	filled := n.Identify(t, object{"externalUserId": "u-1", "metadata": object{"a": 2, "b": 2, "c": 3}})
	require.Equal(t, "map[a:1 b:2 c:3]", fmt.Sprint(filled["metadata"]))
}

func onlySeen(t *testing.T, n *tenant) {
	n.Listen(t)
	first := n.Identify(t, apptest.With("u-1", apptest.EveryTrait))
	again := n.Identify(t, apptest.With("u-1", apptest.EveryTrait))
	require.Greater(t, again["lastSeenAt"], first["lastSeenAt"])
	require.Equal(t, apptest.Without(first, "lastSeenAt"), apptest.Without(again, "lastSeenAt"))
	require.Len(t, n.Recorded(t), 1, "the insertion's")
}

func idempotent(t *testing.T, n *tenant) {
	for range 3 {
		n.Identify(t, apptest.With("u-1", apptest.EveryTrait))
	}
	require.Equal(t, 1, n.App.Store.Client().Contact.Query().CountX(n.Context(t.Context())))
}

func needsWriting(t *testing.T, n *tenant) {
	a := n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "u-1"}, "Authorization", "Bearer "+n.ReadKey)
	require.Equal(t, "ERR_SCOPE_INSUFFICIENT", a.Code())
}

func keys(n int) object {
	all := object{}
	for i := range n {
		all[fmt.Sprintf("k%d", i)] = i
	}
	return all
}

func traitLimits(t *testing.T, n *tenant) {
	unchanged := n.Watch(t)
	for why, test := range map[string]struct {
		field  string
		traits object
	}{
		"an address of 321 characters":  {"email", object{"email": strings.Repeat("a", 60) + "@" + strings.Repeat("b.", 128) + "test"}},
		"an address without @":          {"email", object{"email": "ada"}},
		"an address with a name":        {"email", object{"email": "Ada <ada@example.com>"}},
		"two addresses":                 {"email", object{"email": "ada@example.com, eve@example.com"}},
		"an empty address":              {"email", object{"email": " "}},
		"a blank name":                  {"name", object{"name": " \t"}},
		"a name of 201 characters":      {"name", object{"name": strings.Repeat("é", 201)}},
		"a plan of 101 characters":      {"plan", object{"plan": strings.Repeat("é", 101)}},
		"a negative amount":             {"mrrCents", object{"mrrCents": -1, "currency": "EUR"}},
		"more than 100,000,000":         {"mrrCents", object{"mrrCents": 100_000_001, "currency": "EUR"}},
		"an amount without currency":    {"currency", object{"mrrCents": 1}},
		"a currency without amount":     {"mrrCents", object{"currency": "EUR"}},
		"an amount with currency null":  {"mrrCents", object{"mrrCents": 1, "currency": nil}},
		"a currency with amount null":   {"mrrCents", object{"mrrCents": nil, "currency": "EUR"}},
		"an amount that is null, alone": {"currency", object{"mrrCents": nil}},
		"a currency in lower case":      {"currency", object{"mrrCents": 1, "currency": "eur"}},
		"a currency with a line end":    {"currency", object{"mrrCents": 1, "currency": "EUR\n"}},
		"metadata of 101 keys":          {"metadata", object{"metadata": keys(101)}},
	} {
		a := n.Do(t, http.MethodPost, "/v1/contacts/identify", apptest.With("u-1", test.traits))
		require.Equal(t, http.StatusUnprocessableEntity, a.Status, why)
		require.Equal(t, "ERR_VALIDATION", a.Code(), why)
		require.Contains(t, a.Fields(), test.field, why)
	}
	unchanged(t)
}

func traitsAtTheirLimits(t *testing.T, n *tenant) {
	address := strings.Repeat("a", 64) + "@" + strings.Repeat(strings.Repeat("b", 50)+".", 4) + strings.Repeat("c", 51)
	require.Len(t, address, 320)
	made := n.Identify(t, object{
		"externalUserId": strings.Repeat("é", 255), "email": address, "name": strings.Repeat("é", 200),
		"plan": strings.Repeat("é", 100), "mrrCents": 100_000_000, "currency": "XXX", "metadata": keys(100),
	})
	require.Equal(t, address, made["email"])
	require.Len(t, made["metadata"], 100)
}

func normalises(t *testing.T, n *tenant) {
	made := n.Identify(t, object{
		"externalUserId": " u-1 ", "email": "  Ada.Lovelace@EXAMPLE.com\n", "name": "  Ada L. ", "plan": "\tTeam ",
	})
	require.Equal(t, "ada.lovelace@example.com", made["email"])
	require.Equal(t, "Ada L.", made["name"])
	require.Equal(t, "Team", made["plan"])
	require.Equal(t, " u-1 ", made["externalUserId"], "the caller's own id is taken as it is")
}

func metadataAsSent(t *testing.T, n *tenant) {
	const sent = `{"z":9007199254740993,"a":1.50,"e":1e400,"nul":"\u0000","deep":{"y":[null,true,{}],"b":"<&>"},"":"no name"}`
	a := n.Do(t, http.MethodPost, "/v1/contacts/identify", `{"externalUserId":"u-1","metadata":`+sent+`}`)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
	kept := strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(sent)
	require.Contains(t, string(a.Raw), kept)
	read := n.Do(t, http.MethodGet, "/v1/contacts/"+a.Data()["id"].(string), nil)
	require.Contains(t, string(read.Raw), kept)
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// identified sends metadata to identify and returns the contact's metadata afterwards, both as
// text.
func (n *tenant) identified(t *testing.T, metadata string) string {
	t.Helper()
	a := n.Do(t, http.MethodPost, "/v1/contacts/identify", `{"externalUserId":"u-1","name":"Ada","metadata":`+metadata+`}`)
	require.Equal(t, http.StatusOK, a.Status, "%.500s", a.Raw)
	var answer struct {
		Data struct{ Metadata json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(a.Raw, &answer))
	return string(answer.Data.Metadata)
}

func metadataNull(t *testing.T, n *tenant) {
	n.Make(t, http.MethodPost, "/v1/contacts", `{"externalUserId":"u-1","metadata":{"a":null,"b":1,"c":null,"d":null}}`)
	n.Listen(t)
	require.Equal(t, `{"a":{"x":null},"b":1,"c":null,"d":false,"e":null}`, n.identified(t, `{"d":false,"e":null,"b":2,"a":{"x":null},"c":null}`))
	told := n.Payloads(t, event.ContactUpdated)
	require.Len(t, told, 1)
	require.Contains(t, told[0]["changes"], "metadata")
	n.identified(t, `{"a":1,"c":null,"e":null}`)
	require.Len(t, n.Payloads(t, event.ContactUpdated), 1, "null again is no change")
}

func metadataGrows(t *testing.T, n *tenant) {
	n.Make(t, http.MethodPost, "/v1/contacts", apptest.With("u-1", object{"metadata": object{"last": nil}}))
	require.Contains(t, n.identified(t, encoded(t, keys(98))), `"k97":97`)
	n.Listen(t)
	filled := n.identified(t, `{"y":1,"z":2,"last":3}`)
	require.Contains(t, filled, `{"last":3,`, "what has a place already always fits")
	require.Contains(t, filled, `,"y":1}`, "the first of what is new, in the order that was sent")
	require.Len(t, n.Payloads(t, event.ContactUpdated), 1)
	require.Equal(t, filled, n.identified(t, `{"z":2,"y":2}`))
	require.Len(t, n.Payloads(t, event.ContactUpdated), 1, "what doesn't fit is no change")
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, "/v1/contacts/identify", apptest.With("u-1", object{"metadata": keys(101)}))
	require.Equal(t, []string{"metadata"}, a.Fields())
}

func metadataGrowsLarge(t *testing.T, n *tenant) {
	of := func(bytes int) string { return `"` + strings.Repeat("x", bytes-2) + `"` }
	n.Identify(t, object{"externalUserId": "u-1"})
	const limit = 256 << 10
	have := `{"a":` + of(limit-100-len(`{"a":}`)) + `}`
	require.Equal(t, have, n.identified(t, have))
	// 100 bytes are left. The values of b and d are too long for that.
	kept := n.identified(t, `{"b":`+of(200)+`,"c":null,"d":`+of(93)+`,"e":`+of(81)+`,"f":1,"c2":2}`)
	require.Equal(t, have[:len(have)-1]+`,"c":null,"e":`+of(81)+`}`, kept)
	require.Len(t, kept, limit-5)
	require.Equal(t, kept, n.identified(t, `{"c":1234567890}`), "it would be longer by 6")
	require.Contains(t, n.identified(t, `{"c":12345}`), `"c":12345,`)
}

func tellsChanges(t *testing.T, n *tenant) {
	n.Listen(t, event.ContactUpdated)
	n.Identify(t, object{"externalUserId": "u-1", "name": "Ada", "metadata": object{"a": 1}})
	now := n.Identify(t, apptest.With("u-1", apptest.EveryTrait))
	told := n.Payloads(t, event.ContactUpdated)
	require.Len(t, told, 1)
	require.Equal(t, "map["+
		"currency:map[from:<nil> to:EUR] email:map[from:<nil> to:ada@example.com] "+
		"metadata:map[from:map[a:1] to:map[a:1 seats:12]] mrrCents:map[from:<nil> to:4900] plan:map[from:<nil> to:team]]",
		fmt.Sprint(told[0]["changes"]))
	require.Equal(t, fmt.Sprint(apptest.Without(now, "organizationId")), fmt.Sprint(told[0]["contact"]))
	require.Equal(t, now["updatedAt"], now["lastSeenAt"])
}
