package contacts_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestAContact(t *testing.T) {
	t.Parallel()
	togetherOn(t, capped.Start(t), map[string]func(*testing.T, *tenant){
		"is created with every trait, by an admin":                   createContact,
		"is created without any trait, as often as you like":         createNobody,
		"is told of when it is created":                              contactCreated,
		"is refused an external id that another one has":             takenExternalID,
		"may have an external id that another organization uses":     externalIDElsewhere,
		"is refused beyond its limits":                               contactLimits,
		"takes traits up to their limits":                            contactAtItsLimits,
		"of another organization isn't there":                        foreignContact,
		"has posts on all boards, newest first":                      contactPosts,
		"is created up to the cap of the plan, the conflict first":   capOfCreated,
		"counts the votes and comments of the address that it has":   countsFollowAddress,
		"is deleted, told by its ids, and its posts stay without it": deleteContact,
		"that was deleted comes back as another one":                 identifyAfterDeletion,
	})
}

func TestAPatchOfAContact(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"overwrites each trait and tells both sides of it":      overwrites,
		"empties a trait with null":                             empties,
		"fills a trait that was null":                           fillsByPatch,
		"takes mrrCents and currency together or not at all":    patchPaired,
		"replaces metadata as a whole":                          patchMetadata,
		"of nothing new changes nothing":                        patchNothing,
		"sent back as it was read changes nothing":              contactSentBack,
		"moves updatedAt, not when and how the contact came in": patchKeepsHistory,
	})
}

func createContact(t *testing.T, n *tenant) {
	a := n.Do(t, http.MethodPost, "/v1/contacts", `{
		"externalUserId": " u-1 ", "email": " Ada.Lovelace@EXAMPLE.com\n", "name": " Ada ", "plan": "\tTeam ", "mrrCents": 0, "currency": "EUR",
		"metadata": {"z": 9007199254740993, "a": 1.50}
	}`)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
	made := a.Data()
	require.Equal(t, object{
		"organizationId": n.Organization.ID.String(), "externalUserId": " u-1 ", "email": "ada.lovelace@example.com",
		"name": "Ada", "plan": "Team", "mrrCents": json.Number("0"), "currency": "EUR",
		"metadata": object{"z": json.Number("9007199254740993"), "a": json.Number("1.50")},
		"source":   "admin", "consentBasis": "admin_created",
	}, apptest.Without(made, "id", "firstSeenAt", "lastSeenAt", "createdAt", "updatedAt"))
	require.Contains(t, string(a.Raw), `"metadata":{"z":9007199254740993,"a":1.50}`, "in the order that was sent")
	for _, at := range []string{"firstSeenAt", "lastSeenAt", "updatedAt"} {
		require.Equal(t, made["createdAt"], made[at], at)
	}
	made["postCount"], made["voteCount"], made["commentCount"] = json.Number("0"), json.Number("0"), json.Number("0")
	require.Equal(t, made, n.Get(t, "/v1/contacts/"+made["id"].(string)))
}

func createNobody(t *testing.T, n *tenant) {
	ids := map[any]bool{}
	for _, body := range []object{{}, {}, {"externalUserId": nil, "email": nil, "name": nil, "plan": nil, "mrrCents": nil, "currency": nil}} {
		a := n.Do(t, http.MethodPost, "/v1/contacts", body)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
		for _, trait := range []string{"externalUserId", "email", "name", "plan", "mrrCents", "currency"} {
			require.Nil(t, a.Data()[trait], trait)
		}
		require.Equal(t, object{}, a.Data()["metadata"])
		ids[a.Data()["id"]] = true
	}
	require.Len(t, ids, 3)
	n.Person(t, "u-1")
	n.Person(t, "u-2") // the same address and name: only the external id is unique
}

func contactCreated(t *testing.T, n *tenant) {
	n.Listen(t)
	for _, body := range []object{{}, apptest.With("u-1", apptest.EveryTrait)} {
		made := n.Make(t, http.MethodPost, "/v1/contacts", body)
		told := n.Payloads(t, event.ContactCreated)
		require.Equal(t, fmt.Sprint(object{
			"event": "contact.created", "organizationId": n.Organization.ID, "contact": apptest.Without(made, "organizationId"),
		}), fmt.Sprint(told[len(told)-1]))
	}
	require.Len(t, n.Recorded(t), 2)
}

func takenExternalID(t *testing.T, n *tenant) {
	n.Identify(t, object{"externalUserId": "taken"})
	other := n.Person(t, "u-2")
	n.Listen(t)
	body := object{"externalUserId": "taken", "name": "Eve", "metadata": object{"new": true}}
	for method, path := range map[string]string{http.MethodPost: "/v1/contacts", http.MethodPatch: other} {
		a := n.Refused(t, "ERR_CONFLICT", method, path, body)
		require.Equal(t, http.StatusConflict, a.Status)
		require.Equal(t, "external_user_id is already taken", a.Body["error"].(object)["message"])
		require.Equal(t, object{"field": "externalUserId"}, a.Details())
	}
	require.Equal(t, "Taken", n.Patch(t, other, object{"externalUserId": "Taken"})["externalUserId"], "letter by letter")
}

func externalIDElsewhere(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	stranger.Person(t, "u-1")
	n.Person(t, "u-1")
	stranger.Person(t, "u-2")
	n.Patch(t, n.Person(t, "u-3"), object{"externalUserId": "u-2"})
}

func contactLimits(t *testing.T, n *tenant) {
	contact := n.Person(t, "u-1")
	unchanged := n.Watch(t)
	for why, test := range map[string]struct {
		field string
		body  object
	}{
		"an empty external id":             {"externalUserId", object{"externalUserId": ""}},
		"an external id of 256 characters": {"externalUserId", object{"externalUserId": strings.Repeat("é", 256)}},
		"an external id with a NUL":        {"externalUserId", object{"externalUserId": "u\x00"}},
		"an address of 321 characters":     {"email", object{"email": strings.Repeat("a", 60) + "@" + strings.Repeat("b.", 128) + "test"}},
		"an address without @":             {"email", object{"email": "ada"}},
		"an empty address":                 {"email", object{"email": ""}},
		"a blank name":                     {"name", object{"name": " \n"}},
		"a name of 201 characters":         {"name", object{"name": strings.Repeat("é", 201)}},
		"a plan of 101 characters":         {"plan", object{"plan": strings.Repeat("é", 101)}},
		"a negative amount":                {"mrrCents", object{"mrrCents": -1, "currency": "EUR"}},
		"more than 100,000,000":            {"mrrCents", object{"mrrCents": 100_000_001, "currency": "EUR"}},
		"a currency of two letters":        {"currency", object{"mrrCents": 1, "currency": "EU"}},
		"a currency in lower case":         {"currency", object{"mrrCents": 1, "currency": "eur"}},
		"metadata of 101 keys":             {"metadata", object{"metadata": keys(101)}},
		"metadata of more than 256 KiB":    {"metadata", object{"metadata": object{"a": strings.Repeat("x", 256<<10)}}},
		"metadata that is null":            {"metadata", object{"metadata": nil}},
		"metadata that is a list":          {"metadata", object{"metadata": []any{}}},
	} {
		for method, path := range map[string]string{http.MethodPost: "/v1/contacts", http.MethodPatch: contact} {
			a := n.Do(t, method, path, test.body)
			require.Equal(t, "ERR_VALIDATION", a.Code(), "%s %s: %s", method, why, a.Raw)
			require.Contains(t, a.Fields(), test.field, why)
		}
	}
	unchanged(t)
}

func contactAtItsLimits(t *testing.T, n *tenant) {
	address := strings.Repeat("a", 64) + "@" + strings.Repeat(strings.Repeat("b", 50)+".", 4) + strings.Repeat("c", 51)
	large := object{"a": strings.Repeat("x", 256<<10-len(`{"a":""}`))}
	body := object{
		"externalUserId": strings.Repeat("é", 255), "email": address, "name": strings.Repeat("é", 200),
		"plan": strings.Repeat("é", 100), "mrrCents": json.Number("100000000"), "currency": "XXX", "metadata": large,
	}
	made := n.Make(t, http.MethodPost, "/v1/contacts", body)
	n.Patch(t, "/v1/contacts/"+made["id"].(string), object{"externalUserId": nil})
	patched := n.Patch(t, n.Person(t, "u-1"), body)
	for name := range body {
		require.Equal(t, body[name], made[name])
		require.Equal(t, body[name], patched[name])
	}
	require.Len(t, n.Make(t, http.MethodPost, "/v1/contacts", object{"metadata": keys(100)})["metadata"], 100)
}

func foreignContact(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	theirs := stranger.Person(t, "u-1")
	unchanged := stranger.Watch(t)
	for _, contact := range []string{theirs, "/v1/contacts/" + publicid.NewContact().String()} {
		n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, contact, nil)
		n.Refused(t, "ERR_NOT_FOUND", http.MethodPatch, contact, object{"name": "Eve"})
		n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, contact, nil)
		n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, contact+"/posts", nil)
	}
	unchanged(t)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, "/v1/contacts/"+publicid.NewPost().String(), nil)
}

func contactPosts(t *testing.T, n *tenant) {
	contact, other := n.Person(t, "u-1"), n.Person(t, "u-2")
	boards := []string{n.Board(t), n.Board(t)}
	post := func(i int, of string) string {
		return n.ID(t, boards[i%2]+"/posts", object{"title": fmt.Sprint(i), "contactId": strings.TrimPrefix(of, "/v1/contacts/")})
	}
	made := make([]string, 7)
	for i := range made {
		made[i] = post(i, contact)
		post(i, other)
	}
	n.Make(t, http.MethodDelete, "/v1/posts/"+made[2], nil)
	n.Patch(t, "/v1/posts/"+made[4], object{"contactId": nil})
	want := []string{made[6], made[5], made[3], made[1], made[0]}
	for _, limit := range []string{"1", "2", "5", "100"} {
		require.Equal(t, want, n.Walk(t, contact+"/posts", limit, func() {}), "by %s", limit)
	}
	first := n.Do(t, http.MethodGet, contact+"/posts?limit=1", nil).Body["data"].([]any)[0]
	require.Equal(t, n.Get(t, "/v1/posts/"+made[6]), first, "as it is read alone")
	require.Equal(t, json.Number("5"), n.Get(t, contact)["postCount"])
}

func capOfCreated(t *testing.T, n *tenant) {
	free := n.on(t, "free")
	first := free.Person(t, "u-1")
	free.Identify(t, object{"externalUserId": "u-2"})
	free.Make(t, http.MethodPost, "/v1/contacts", object{})
	for _, body := range []object{{}, {"externalUserId": "u-3"}} {
		a := free.Refused(t, "ERR_PLAN_LIMIT", http.MethodPost, "/v1/contacts", body)
		require.Equal(t, http.StatusPaymentRequired, a.Status)
		require.Equal(t, "map[current:3 limit:3 resource:contact]", fmt.Sprint(a.Details()))
	}
	free.Refused(t, "ERR_CONFLICT", http.MethodPost, "/v1/contacts", object{"externalUserId": "u-2"})
	free.Refused(t, "ERR_VALIDATION", http.MethodPost, "/v1/contacts", object{"name": ""})
	free.Patch(t, first, object{"externalUserId": "u-3"})
	free.Make(t, http.MethodDelete, first, nil)
	free.Person(t, "u-3")
	free.Refused(t, "ERR_PLAN_LIMIT", http.MethodPost, "/v1/contacts", object{})
}

// addressHash returns the hash that the public flow stores for a voter's address.
func (n *tenant) addressHash(address string) []byte {
	mac := hmac.New(sha256.New, n.App.Config.EmailHashKey)
	mac.Write([]byte(address))
	return mac.Sum(nil)
}

func countsFollowAddress(t *testing.T, n *tenant) {
	posts := n.NewPosts(t, 2)
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	on, err := publicid.Parse[publicid.Post](posts[0].(string))
	require.NoError(t, err)
	second, err := publicid.Parse[publicid.Post](posts[1].(string))
	require.NoError(t, err)
	client.Vote.Create().SetPostID(on).SetEmailHash(n.addressHash("ada@example.com")).ExecX(ctx)
	for _, post := range []publicid.Post{on, second} {
		client.Vote.Create().SetPostID(post).SetEmailHash(n.addressHash("eve@example.com")).ExecX(ctx)
	}
	client.Comment.Create().SetPostID(on).SetBodyText("x").SetEmailHash(n.addressHash("eve@example.com")).ExecX(ctx)
	contact := n.Person(t, "u-1")
	counts := func() string {
		c := n.Get(t, contact)
		return fmt.Sprint(c["postCount"], " ", c["voteCount"], " ", c["commentCount"])
	}
	require.Equal(t, "0 1 0", counts())
	n.Patch(t, "/v1/posts/"+posts[1].(string), object{"contactId": strings.TrimPrefix(contact, "/v1/contacts/")})
	for _, test := range []struct {
		address any
		counts  string
	}{
		{" EVE@Example.com\n", "1 2 1"}, {"nobody@example.com", "1 0 0"}, {"ada@example.com", "1 1 0"}, {nil, "1 0 0"}, {"eve@example.com", "1 2 1"},
	} {
		n.Patch(t, contact, object{"email": test.address})
		require.Equal(t, test.counts, counts(), "%v", test.address)
	}
}

func deleteContact(t *testing.T, n *tenant) {
	hook := n.Listen(t)
	for _, externalUserID := range []any{"u-1", nil} {
		made := n.Make(t, http.MethodPost, "/v1/contacts", object{"externalUserId": externalUserID, "email": "ada@example.com"})
		contact := "/v1/contacts/" + made["id"].(string)
		post := "/v1/posts/" + n.ID(t, n.Board(t)+"/posts", object{"title": "x", "contactId": made["id"]})
		gone := "/v1/posts/" + n.ID(t, n.Board(t)+"/posts", object{"title": "x", "contactId": made["id"]})
		n.Make(t, http.MethodDelete, gone, nil)
		before := n.Get(t, post)
		a := n.Do(t, http.MethodDelete, contact, nil)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		require.Equal(t, object{"id": made["id"]}, a.Data())
		told := n.Payloads(t, event.ContactDeleted)
		require.Equal(t, object{
			"event": "contact.deleted", "organizationId": n.Organization.ID.String(),
			"contact": object{"id": made["id"], "externalUserId": externalUserID},
		}, told[len(told)-1])
		before["contactId"] = nil
		require.Equal(t, apptest.Without(before, "updatedAt"), apptest.Without(n.Get(t, post), "updatedAt"))
		n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, contact, nil)
		n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, contact, nil)
		n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, n.Board(t)+"/posts", object{"title": "x", "contactId": made["id"]})
	}
	require.Len(t, n.Payloads(t, event.ContactDeleted), 2)
	log := n.Do(t, http.MethodGet, "/v1/webhooks/"+hook+"/deliveries?eventType=contact.created", nil)
	require.Len(t, log.Body["data"], 2, "what was told before stays in the log")
}

func identifyAfterDeletion(t *testing.T, n *tenant) {
	old := n.Person(t, "u-1")
	n.Make(t, http.MethodDelete, old, nil)
	a := n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "u-1"})
	require.Equal(t, http.StatusCreated, a.Status)
	require.NotEqual(t, strings.TrimPrefix(old, "/v1/contacts/"), a.Data()["id"])
	require.Nil(t, a.Data()["name"], "nothing is left of the first one")
	require.Equal(t, "identify", a.Data()["source"])
}

// changes returns the changes of the last contact.updated, and the number of such events.
func (n *tenant) changes(t *testing.T) (string, int) {
	t.Helper()
	told := n.Payloads(t, event.ContactUpdated)
	if len(told) == 0 {
		return "", 0
	}
	text, err := json.Marshal(told[len(told)-1]["changes"])
	require.NoError(t, err)
	return string(text), len(told)
}

// eachPatch patches a new contact for each case. The keys are patches, the values the changes in
// the event.
func eachPatch(t *testing.T, n *tenant, start object, cases map[string]string) {
	t.Helper()
	n.Listen(t, event.ContactUpdated)
	told := 0
	for patch, want := range cases {
		made := n.Make(t, http.MethodPost, "/v1/contacts", start)
		id := made["id"].(string)
		got := n.Patch(t, "/v1/contacts/"+id, patch)
		changes, count := n.changes(t)
		told++
		require.Equal(t, told, count, "%s is told once", patch)
		require.JSONEq(t, want, changes, patch)
		var sides map[string]struct{ To any }
		require.NoError(t, json.Unmarshal([]byte(want), &sides))
		for trait, side := range sides {
			made[trait] = side.To
		}
		require.Equal(t, fmt.Sprint(apptest.Without(made, "updatedAt")), fmt.Sprint(apptest.Without(got, "updatedAt")), patch)
		last := n.Payloads(t, event.ContactUpdated)[count-1]
		require.Equal(t, fmt.Sprint(apptest.Without(got, "organizationId")), fmt.Sprint(last["contact"]))
		require.Equal(t, got, apptest.Without(n.Get(t, "/v1/contacts/"+id), "postCount", "voteCount", "commentCount"))
	}
}

func overwrites(t *testing.T, n *tenant) {
	eachPatch(t, n, apptest.EveryTrait, map[string]string{
		`{"externalUserId":" u-2 "}`:         `{"externalUserId":{"from":null,"to":" u-2 "}}`,
		`{"email":" Eve@Example.COM "}`:      `{"email":{"from":"ada@example.com","to":"eve@example.com"}}`,
		`{"name":" Eve "}`:                   `{"name":{"from":"Ada","to":"Eve"}}`,
		`{"plan":"solo"}`:                    `{"plan":{"from":"team","to":"solo"}}`,
		`{"mrrCents":0,"currency":"EUR"}`:    `{"mrrCents":{"from":4900,"to":0}}`,
		`{"mrrCents":4900,"currency":"USD"}`: `{"currency":{"from":"EUR","to":"USD"}}`,
		`{"mrrCents":1,"currency":"USD"}`:    `{"mrrCents":{"from":4900,"to":1},"currency":{"from":"EUR","to":"USD"}}`,
		`{"metadata":{"a":["x"]}}`:           `{"metadata":{"from":{"seats":12},"to":{"a":["x"]}}}`,
		`{"name":"Eve","plan":"team"}`:       `{"name":{"from":"Ada","to":"Eve"}}`,
	})
}

func empties(t *testing.T, n *tenant) {
	eachPatch(t, n, apptest.EveryTrait, map[string]string{
		`{"email":null}`:                    `{"email":{"from":"ada@example.com","to":null}}`,
		`{"name":null}`:                     `{"name":{"from":"Ada","to":null}}`,
		`{"plan":null}`:                     `{"plan":{"from":"team","to":null}}`,
		`{"mrrCents":null,"currency":null}`: `{"mrrCents":{"from":4900,"to":null},"currency":{"from":"EUR","to":null}}`,
		`{"metadata":{}}`:                   `{"metadata":{"from":{"seats":12},"to":{}}}`,
	})
	contact := n.Person(t, "u-1")
	require.Nil(t, n.Patch(t, contact, object{"externalUserId": nil})["externalUserId"])
	changes, _ := n.changes(t)
	require.JSONEq(t, `{"externalUserId":{"from":"u-1","to":null}}`, changes)
	require.Equal(t, http.StatusCreated, n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "u-1"}).Status)
}

func fillsByPatch(t *testing.T, n *tenant) {
	eachPatch(t, n, object{}, map[string]string{
		`{"email":"ada@example.com","name":null}`: `{"email":{"from":null,"to":"ada@example.com"}}`,
		`{"name":"Ada","externalUserId":null}`:    `{"name":{"from":null,"to":"Ada"}}`,
		`{"plan":"team"}`:                         `{"plan":{"from":null,"to":"team"}}`,
		`{"mrrCents":0,"currency":"EUR"}`:         `{"mrrCents":{"from":null,"to":0},"currency":{"from":null,"to":"EUR"}}`,
		`{"metadata":{"b":null}}`:                 `{"metadata":{"from":{},"to":{"b":null}}}`,
	})
}

func patchPaired(t *testing.T, n *tenant) {
	for _, contact := range []string{n.Person(t, "u-1"), "/v1/contacts/" + n.ID(t, "/v1/contacts", object{})} {
		for _, bad := range []struct {
			body object
			rule string
		}{
			{object{"mrrCents": 1}, "currency required"}, {object{"currency": "EUR"}, "mrrCents required"},
			{object{"mrrCents": nil}, "currency required"}, {object{"currency": nil}, "mrrCents required"},
			{object{"mrrCents": 1, "currency": nil}, "mrrCents paired"}, {object{"mrrCents": nil, "currency": "EUR"}, "mrrCents paired"},
		} {
			for method, path := range map[string]string{http.MethodPatch: contact, http.MethodPost: "/v1/contacts"} {
				require.Equal(t, []string{bad.rule}, apptest.FieldRules(n.Refused(t, "ERR_VALIDATION", method, path, bad.body)))
			}
		}
	}
}

func patchMetadata(t *testing.T, n *tenant) {
	contact := "/v1/contacts/" + n.ID(t, "/v1/contacts", object{"metadata": object{"a": 1, "b": 2}})
	const sent = `{"z":9007199254740993,"b":1e400,"":"<&>"}`
	a := n.Do(t, http.MethodPatch, contact, `{"metadata":`+sent+`}`)
	kept := strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(sent)
	require.Contains(t, string(a.Raw), `"metadata":`+kept)
	require.Contains(t, string(n.Do(t, http.MethodGet, contact, nil).Raw), `"metadata":`+kept)
	require.Len(t, n.Patch(t, contact, object{"metadata": keys(100)})["metadata"], 100, "they aren't added to those before")
	require.Equal(t, object{"a": json.Number("1")}, n.Patch(t, contact, object{"metadata": object{"a": 1}})["metadata"])
}

func patchNothing(t *testing.T, n *tenant) {
	contact := n.Person(t, "u-1")
	n.Patch(t, contact, `{"metadata":{"a":1.0,"b":{"c":"é","d":[]}}}`)
	n.Listen(t)
	before := n.Get(t, contact)
	unchanged := n.Watch(t)
	for _, patch := range []string{
		`{}`, `{"name":" Ada "}`, `{"email":" ADA@example.com"}`, `{"externalUserId":"u-1","plan":"team\t"}`,
		`{"mrrCents":4900,"currency":"EUR"}`, `{"metadata": {"b": {"d": [ ], "c": "\u00e9"}, "a": 1.0}}`,
		`{"firstSeenAt":1,"lastSeenAt":"2020-01-01T00:00:00Z","createdAt":null}`,
	} {
		require.Equal(t, apptest.Without(before, "postCount", "voteCount", "commentCount"), n.Patch(t, contact, patch), patch)
	}
	unchanged(t)
	n.Patch(t, contact, `{"metadata":{"a":1,"b":{"c":"é","d":[]}}}`)
	changes, _ := n.changes(t)
	require.NotEmpty(t, changes, "1 isn't 1.0 to everybody")
}

func contactSentBack(t *testing.T, n *tenant) {
	n.Listen(t)
	whole := maps.Clone(apptest.EveryTrait)
	whole["metadata"] = object{"<&>": json.Number("1e400"), "a": []any{json.Number("1.50"), nil, "\u2028"}}
	for _, traits := range []object{{}, apptest.With("u-1", whole), apptest.With("u-2", object{"name": "İı ß", "email": "é@example.com"})} {
		contact := "/v1/contacts/" + n.ID(t, "/v1/contacts", traits)
		read := n.Get(t, contact)
		unchanged := n.Watch(t)
		got := n.Patch(t, contact, read)
		require.Equal(t, apptest.Without(read, "postCount", "voteCount", "commentCount"), got)
		unchanged(t)
	}
}

func patchKeepsHistory(t *testing.T, n *tenant) {
	n.Identify(t, object{"externalUserId": "u-1"})
	seen := n.Identify(t, object{"externalUserId": "u-1"})
	contact := "/v1/contacts/" + seen["id"].(string)
	got := n.Patch(t, contact, object{
		"name": "Ada", "firstSeenAt": apptest.LongPast, "lastSeenAt": apptest.FarAway,
		"createdAt": apptest.LongPast, "updatedAt": apptest.LongPast,
	})
	require.Equal(t, apptest.Without(seen, "name", "updatedAt"), apptest.Without(got, "name", "updatedAt"))
	apptest.Later(t, got, seen, "updatedAt")
}
