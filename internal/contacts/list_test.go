package contacts_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/contact"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestTheListOfContacts(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is newest first": newestContacts,
		"is filtered by each trait alone and together": filterContacts,
		"takes any of several plans":                   filterPlans,
		"begins at the moment that it is asked for":    updatedContacts,
		"shows nothing of another organization":        ownContacts,
		"refuses a filter that is out of its limits":   badContactFilters,
		"refuses a filter that isn't UTF-8":            malformedContactFilters,
		"refuses a date where a moment is asked for":   dateForMoment,
		"takes filters up to their limits":             contactFiltersAtLimits,
		"is walked with filters page by page":          walkFiltered,
	})
}

func TestASearchOfContacts(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"finds a text of any length in address or name":       searchAnywhere,
		"finds it without regard to case":                     searchAnyCase,
		"finds nothing that is half in one and half in other": searchAcross,
		"finds nothing by the separator in the index":         searchSeparator,
		"takes every character literally":                     searchLiterally,
		"uses the current name and address of a contact":      searchAfterPatch,
		"uses the traits from identify":                       searchAfterIdentify,
	})
}

func TestASortOfContacts(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"by revenue has those without any last": sortByRevenue,
		"by visits has the last one first":      sortByVisits,
		"is walked page by page, each once":     walkSorted,
		"goes with filters":                     sortFiltered,
		"refuses the cursor of another sort":    cursorOfAnotherSort,
		"refuses a cursor that was made up":     cursorMadeUp,
		"goes on after the contact was deleted": cursorOfDeleted,
	})
}

// label is the field by which these tests name contacts.
const label = "externalUserId"

// people makes a contact for each set of traits, in their order, with the external ids a, b, c, …
func (n *tenant) people(t *testing.T, traits ...object) {
	t.Helper()
	for i, one := range traits {
		n.Make(t, http.MethodPost, "/v1/contacts", apptest.With(string(rune('a'+i)), one))
	}
}

// find reads all pages of a query, two contacts at a time, and returns the labels as one word.
func (n *tenant) find(t *testing.T, pairs ...string) string {
	t.Helper()
	return n.findBy(t, 2, pairs...)
}

func (n *tenant) findBy(t *testing.T, limit int, pairs ...string) string {
	t.Helper()
	query := url.Values{"limit": {fmt.Sprint(limit)}}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	var found strings.Builder
	for {
		a := n.Do(t, http.MethodGet, "/v1/contacts?"+query.Encode(), nil)
		require.Equal(t, http.StatusOK, a.Status, "%v: %s", pairs, a.Raw)
		for _, item := range a.Body["data"].([]any) {
			found.WriteString(item.(object)[label].(string))
		}
		cursor, more := a.Body["nextCursor"].(string)
		if !more {
			return found.String()
		}
		require.Len(t, a.Body["data"], limit, "only the last page may be short")
		query.Set("cursor", cursor)
	}
}

func newestContacts(t *testing.T, n *tenant) {
	n.people(t, object{}, object{}, object{})
	n.Identify(t, object{label: "d"})
	n.Identify(t, object{label: "a", "name": "seen again"})
	require.Equal(t, "dcba", n.find(t))
	require.Equal(t, "dcba", n.find(t, "sort", "created"))
	id := n.Do(t, http.MethodGet, "/v1/contacts?externalUserId=d", nil).Body["data"].([]any)[0].(object)
	require.Equal(t, id, apptest.Without(n.Get(t, "/v1/contacts/"+id["id"].(string)), "postCount", "voteCount", "commentCount"))
}

func filterContacts(t *testing.T, n *tenant) {
	n.people(t,
		object{"email": "ada@example.com", "name": "Ada", "plan": "team"},
		object{"email": "ada@example.com", "name": "Eve", "plan": "solo"},
		object{"email": "eve@example.com", "name": "Ada", "plan": "Team"},
	)
	n.Identify(t, object{label: "d", "email": "bob@example.com", "plan": "team"})
	n.App.Store.Client().Contact.Create().SetExternalUserID("e").SetMetadata(json.RawMessage("{}")).
		SetSource("public_vote").SetConsentBasis("public_interaction_opt_in").ExecX(n.Context(t.Context()))
	for _, test := range []struct {
		want  string
		pairs []string
	}{
		{"edcba", nil},
		{"a", []string{label, "a"}}, {"", []string{label, "A"}}, {"", []string{label, "ab"}},
		{"ba", []string{"email", "ada@example.com"}}, {"ba", []string{"email", " ADA@Example.com "}}, {"", []string{"email", "ada"}},
		{"da", []string{"plan", "team"}}, {"c", []string{"plan", "Team"}}, {"", []string{"plan", "tea"}},
		{"cba", []string{"source", "admin"}}, {"d", []string{"source", "identify"}}, {"e", []string{"source", "public_vote"}},
		{"", []string{"source", "from_the_future"}},
		{"d", []string{"consentBasis", "sdk_identify"}}, {"e", []string{"consentBasis", "public_interaction_opt_in"}},
		{"cba", []string{"q", "ada"}},
		{"a", []string{"q", "ada", "plan", "team"}}, {"ba", []string{"q", "ada", "email", "ada@example.com"}},
		{"a", []string{"source", "admin", "plan", "team"}}, {"", []string{"source", "identify", "consentBasis", "admin_created"}},
		{"b", []string{
			"q", "eve", "plan", "solo,team", label, "b", "email", "ada@example.com", "source", "admin",
			"consentBasis", "admin_created", "updatedSince", apptest.LongPast, "sort", "mrr",
		}},
		{"", []string{"q", "ada", "updatedSince", apptest.FarAway}},
	} {
		require.Equal(t, test.want, n.find(t, test.pairs...), "%q", test.pairs)
	}
}

func filterPlans(t *testing.T, n *tenant) {
	n.people(t, object{"plan": "team"}, object{"plan": "solo"}, object{"plan": "a plan, of 100%"}, object{})
	for plans, want := range map[string]string{
		"team": "a", "team,solo": "ba", "solo,team,solo": "ba", "team,none": "a", "none": "", " team": "", "team, solo": "a",
	} {
		require.Equal(t, want, n.find(t, "plan", plans), plans)
	}
}

func updatedContacts(t *testing.T, n *tenant) {
	n.people(t, object{}, object{}, object{})
	at := time.Date(2026, 3, 12, 10, 0, 0, 123456000, time.UTC)
	for i, id := range []string{"a", "b", "c"} {
		n.App.Store.Client().Contact.Update().Where(contact.ExternalUserID(id)).
			SetUpdatedAt(at.Add(time.Duration(i) * time.Microsecond)).ExecX(n.Context(t.Context()))
	}
	for since, want := range map[string]string{
		"2026-03-12T10:00:00.123455Z": "cba", "2026-03-12T10:00:00.123456Z": "cba", "2026-03-12T10:00:00.123457Z": "cb",
		"2026-03-12T12:00:00.123458+02:00": "c", "2026-03-12T10:00:00.123459Z": "", "2026-03-12T10:00:00Z": "cba",
		"0001-01-02T00:00:00Z": "cba", "9999-12-31T23:59:59Z": "",
	} {
		require.Equal(t, want, n.find(t, "updatedSince", since), since)
	}
}

func ownContacts(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	stranger.people(t, apptest.EveryTrait)
	n.people(t, object{}, apptest.EveryTrait)
	for _, pairs := range [][]string{
		{"q", "ada"}, {"q", "a"}, {"plan", "team"}, {"email", "ada@example.com"}, {"source", "admin", "plan", "team"},
		{"sort", "mrr", "q", "ada"}, {"sort", "last_seen", "q", "ada"},
	} {
		require.Equal(t, "b", n.find(t, pairs...), "%q", pairs)
	}
	cursor := n.Do(t, http.MethodGet, "/v1/contacts?limit=1", nil).Body["nextCursor"].(string)
	for _, item := range stranger.Do(t, http.MethodGet, "/v1/contacts?cursor="+cursor, nil).Body["data"].([]any) {
		require.Equal(t, stranger.Organization.ID.String(), item.(object)["organizationId"])
	}
}

func badContactFilters(t *testing.T, n *tenant) {
	e := func(count int) string { return url.QueryEscape(strings.Repeat("é", count)) }
	for query, fields := range map[string][]string{
		"q=": {"q"}, "q=" + e(201): {"q"}, "q=%00": {"q"},
		"externalUserId=": {label}, "externalUserId=" + e(256): {label}, "externalUserId=%00": {label},
		"email=": {"email"}, "email=" + e(321): {"email"}, "email=%00": {"email"},
		"source=": {"source"}, "source=" + e(101): {"source"}, "consentBasis=": {"consentBasis"}, "consentBasis=" + e(101): {"consentBasis"},
		"plan=" + e(101): {"plan[0]"}, "plan=a,,b": {"plan[1]"}, "plan=a," + e(101): {"plan[1]"},
		"plan=" + strings.Repeat("a,", 20) + "a": {"plan"},
		"updatedSince=":                          {"updatedSince"}, "updatedSince=yesterday": {"updatedSince"}, "updatedSince=10:00": {"updatedSince"},
		"updatedSince=0000-01-01T00:00:00Z": {"updatedSince"}, "updatedSince=9999-12-31T23:59:59-01:00": {"updatedSince"},
		"sort=": {"sort"}, "sort=plan": {"sort"}, "sort=-mrr": {"sort"}, "limit=0": {"limit"}, "limit=101": {"limit"}, "limit=x": {"limit"},
		"cursor=": {"cursor"}, "cursor=x": {"cursor"},
		"q=&sort=x&limit=0&cursor=&source=": {"q", "sort", "limit", "cursor", "source"},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, "/v1/contacts?"+query, nil)
		require.ElementsMatch(t, fields, a.Fields(), "%s: %s", query, a.Raw)
	}
}

// Postgres refuses such text too, but with an internal error.
func malformedContactFilters(t *testing.T, n *tenant) {
	for _, field := range []string{"q", label, "email", "source", "consentBasis", "plan", "sort", "cursor"} {
		for _, text := range []string{"%ff", "a%c3", "%ed%a0%80"} {
			a := n.Do(t, http.MethodGet, "/v1/contacts?"+field+"="+text, nil)
			require.Equal(t, "ERR_VALIDATION", a.Code(), "%s=%s: %s", field, text, a.Raw)
		}
	}
}

func dateForMoment(t *testing.T, n *tenant) {
	a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, "/v1/contacts?updatedSince=2026-03-12", nil)
	require.Equal(t, []string{"updatedSince"}, a.Fields())
}

func contactFiltersAtLimits(t *testing.T, n *tenant) {
	long := func(count int) string { return strings.Repeat("é", count) }
	n.people(t, object{"name": long(200), "plan": long(100)}, object{"name": long(199), "plan": "a"})
	require.Equal(t, "a", n.find(t, "q", long(200)))
	require.Equal(t, "ba", n.find(t, "q", long(199)))
	require.Equal(t, "ba", n.find(t, "plan", strings.Repeat("a,", 19)+long(100)))
	for name, value := range map[string]string{label: long(255), "email": long(320), "source": long(100), "consentBasis": long(100)} {
		require.Empty(t, n.find(t, name, value), name)
	}
	require.Equal(t, "ba", n.findBy(t, 100))
}

func walkFiltered(t *testing.T, n *tenant) {
	var traits []object
	want := ""
	for i := range 12 {
		traits = append(traits, object{"name": []string{"Ada", "Eve"}[i%2], "plan": []string{"team", "solo", "free"}[i%3]})
		if i%2 == 0 && i%3 < 2 {
			want = string(rune('a'+i)) + want
		}
	}
	n.people(t, traits...)
	for _, limit := range []int{1, 2, 3, 4, 100} {
		require.Equal(t, want, n.findBy(t, limit, "q", "da", "plan", "team,solo"), "by %d", limit)
	}
}

func searchAnywhere(t *testing.T, n *tenant) {
	n.people(t,
		object{"email": "ada.lovelace@example.com", "name": "Ada King, Countess"},
		object{"email": "grace@navy.test"},
		object{"name": "Yu Ai"},
		object{},
	)
	for q, want := range map[string]string{
		"a": "cba", "k": "a", "@": "ba", "y": "cb", "z": "", " ": "ca",
		"ad": "a", "yu": "c", "vy": "b", "om": "a", "a ": "a", "zz": "",
		"ada": "a", "g, ": "a", "est": "b", "u a": "c", "xyz": "",
		"lovelace@example": "a", "ada.lovelace@example.com": "a", "Ada King, Countess": "a", "Countess of": "",
		"lovelace@example.org": "", "ss": "a", "Yu Ai": "c", "ada king,  countess": "", "exampl.com": "", "adalovelace": "",
		"vyn": "", "navynavy": "", "a@e": "", "e@e": "a",
	} {
		require.Equal(t, want, n.find(t, "q", q), "%q", q)
	}
}

func searchAnyCase(t *testing.T, n *tenant) {
	n.people(t, object{"name": "ÉMILE Zola"}, object{"name": "émilie du Châtelet"}, object{"email": "ЖЕНЯ@example.com", "name": "Ωmega ΣΊΣΥΦΟΣ"})
	for q, want := range map[string]string{
		"é": "ba", "É": "ba", "ém": "ba", "ÉMI": "ba", "émile": "a", "ÉMILIE": "b", "CHÂT": "b", "e": "cba", "zOLA": "a",
		"женя": "c", "Женя": "c", "ωmega": "c", "ΩMEGA": "c", "σίσυφ": "c", "ΣΊΣΥΦ": "c",
	} {
		require.Equal(t, want, n.find(t, "q", q), "%q", q)
	}
}

// One index covers the address and the name.
func searchAcross(t *testing.T, n *tenant) {
	n.people(t, object{"email": "ada@example.com", "name": "comet"}, object{"name": "Eve"}, object{})
	for _, q := range []string{"comcomet", "com comet", "com\ncomet", "mco", "\n", "mc"} {
		require.Empty(t, n.find(t, "q", q), "%q", q)
	}
	require.Equal(t, "a", n.find(t, "q", "com"))
}

// The index separates the two by the unit separator, which a query may also contain.
func searchSeparator(t *testing.T, n *tenant) {
	n.people(t, object{"email": "ada@example.com", "name": "comet"}, object{"name": "Eve"}, object{})
	for _, q := range []string{"m\x1fc", "com\x1fcomet", "\x1f", "\x1feve"} {
		require.Empty(t, n.find(t, "q", q), "%q", q)
	}
}

func searchLiterally(t *testing.T, n *tenant) {
	n.people(t,
		object{"name": "100% sure"}, object{"name": "snake_case"}, object{"name": `back\slash`}, object{"name": "100 sure snakeXcase backslash"},
		object{"name": "o'Brien; DROP TABLE \"contacts\" -- $1 ?"}, object{"name": "a.b*c|(d) 🎉"},
	)
	for q, want := range map[string]string{
		"%": "a", "0%": "a", "100% s": "a", "0%s": "", "_": "b", "e_c": "b", "snake_case": "b", `\`: "c", `k\s`: "c", `\\`: "",
		`back\slash`: "c", "'": "e", `drop table "c`: "e", "$1": "e", "?": "e", ".": "f", "*": "f", "b*c|(": "f", ".*": "", "🎉": "f", ") 🎉": "f",
	} {
		require.Equal(t, want, n.find(t, "q", q), "%q", q)
	}
}

func searchAfterPatch(t *testing.T, n *tenant) {
	n.people(t, object{"email": "ada@example.com", "name": "Lovelace"})
	id := n.Do(t, http.MethodGet, "/v1/contacts", nil).Body["data"].([]any)[0].(object)["id"].(string)
	path := "/v1/contacts/" + id
	for _, test := range []struct {
		patch        object
		found, fails []string
	}{
		{object{"plan": "team"}, []string{"ada@", "lovelace"}, []string{"team"}},
		{object{"name": "Byron"}, []string{"ada@", "byron", "b"}, []string{"lovelace", "v", "lo"}},
		{object{"email": "eve@test.org"}, []string{"eve@", "byron", "org"}, []string{"ada", "@example", "x"}},
		{object{"email": nil}, []string{"byron"}, []string{"eve@", "@"}},
		{object{"name": nil}, nil, []string{"byron", "b"}},
		{object{"name": "Ada", "email": "ada@test.org"}, []string{"ada", "ada@"}, []string{"byron"}},
	} {
		n.Patch(t, path, test.patch)
		for _, q := range test.found {
			require.Equal(t, "a", n.find(t, "q", q), "%v: %s", test.patch, q)
		}
		for _, q := range test.fails {
			require.Empty(t, n.find(t, "q", q), "%v: %s", test.patch, q)
		}
	}
	n.Make(t, http.MethodDelete, path, nil)
	require.Empty(t, n.find(t, "q", "ada"))
}

func searchAfterIdentify(t *testing.T, n *tenant) {
	n.Identify(t, object{label: "a"})
	require.Empty(t, n.find(t, "q", "ada"))
	n.Identify(t, object{label: "a", "name": "Ada"})
	require.Equal(t, "a", n.find(t, "q", "ada"))
	n.Identify(t, object{label: "a", "email": "lovelace@example.com"})
	require.Equal(t, "a", n.find(t, "q", "love"))
	n.Identify(t, object{label: "a", "name": "Eve"})
	require.Empty(t, n.find(t, "q", "eve"), "identify doesn't overwrite")
}

func revenue(cents any, currency any) object { return object{"mrrCents": cents, "currency": currency} }

func sortByRevenue(t *testing.T, n *tenant) {
	n.people(t, revenue(500, "EUR"), object{}, revenue(0, "EUR"), revenue(100_000_000, "JPY"), revenue(500, "USD"), object{}, revenue(0, "USD"))
	for limit := 1; limit <= 8; limit++ {
		require.Equal(t, "deagcfb", n.findBy(t, limit, "sort", "mrr"), "by %d: ties have the newest first", limit)
	}
}

func sortByVisits(t *testing.T, n *tenant) {
	n.people(t, object{}, object{}, object{})
	require.Equal(t, "cba", n.find(t, "sort", "last_seen"))
	for _, id := range []string{"b", "a", "b"} {
		n.Identify(t, object{label: id})
	}
	require.Equal(t, "bac", n.find(t, "sort", "last_seen"))
	id := n.Do(t, http.MethodGet, "/v1/contacts?externalUserId=c", nil).Body["data"].([]any)[0].(object)["id"].(string)
	n.Patch(t, "/v1/contacts/"+id, object{"name": "Ada"})
	require.Equal(t, "bac", n.find(t, "sort", "last_seen"), "a patch is no visit")
}

// walkSorted has equal values, and times that differ by a microsecond.
func walkSorted(t *testing.T, n *tenant) {
	amounts := []any{nil, 5, 5, 0, nil, 7, 5, 0, 7, nil, 5}
	for i, amount := range amounts {
		currency := any("EUR")
		if amount == nil {
			currency = nil
		}
		n.Make(t, http.MethodPost, "/v1/contacts", apptest.With(string(rune('a'+i)), revenue(amount, currency)))
	}
	at := time.Date(2026, 3, 12, 10, 0, 0, 0, time.UTC)
	for i := range amounts {
		n.App.Store.Client().Contact.Update().Where(contact.ExternalUserID(string(rune('a' + i)))).
			SetLastSeenAt(at.Add(time.Duration(i%3) * time.Microsecond)).ExecX(n.Context(t.Context()))
	}
	for sort, want := range map[string]string{"mrr": "ifkgcbhdjea", "last_seen": "ifckhebjgda", "created": "kjihgfedcba"} {
		for limit := 1; limit <= 4; limit++ {
			require.Equal(t, want, n.findBy(t, limit, "sort", sort), "%s by %d", sort, limit)
		}
	}
}

func sortFiltered(t *testing.T, n *tenant) {
	var traits []object
	for i := range 6 {
		traits = append(traits, object{"mrrCents": i % 4, "currency": "EUR", "plan": []string{"team", "solo"}[i%2]})
	}
	n.people(t, traits...)
	require.Equal(t, "cea", n.findBy(t, 1, "sort", "mrr", "plan", "team"))
	require.Equal(t, "dfb", n.findBy(t, 1, "sort", "mrr", "plan", "solo"))
	require.Equal(t, "dfb", n.findBy(t, 2, "sort", "mrr", "plan", "solo", "updatedSince", apptest.LongPast))
}

func cursorOfAnotherSort(t *testing.T, n *tenant) {
	n.people(t, apptest.EveryTrait, apptest.EveryTrait)
	sorts := []string{"created", "last_seen", "mrr"}
	for _, of := range sorts {
		cursor := n.Do(t, http.MethodGet, "/v1/contacts?limit=1&sort="+of, nil).Body["nextCursor"].(string)
		for _, with := range slices.DeleteFunc(slices.Clone(sorts), func(s string) bool { return s == of }) {
			a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, "/v1/contacts?sort="+with+"&cursor="+cursor, nil)
			require.Equal(t, []string{"cursor"}, a.Fields(), "%s of %s", with, of)
		}
	}
	created := n.Do(t, http.MethodGet, "/v1/contacts?limit=1", nil).Body["nextCursor"].(string)
	require.Equal(t, "a", n.find(t, "sort", "created", "cursor", created), "created is what is meant without a sort")
}

func cursorMadeUp(t *testing.T, n *tenant) {
	id := publicid.NewContact().String()
	n.people(t, apptest.EveryTrait, apptest.EveryTrait)
	for sort, places := range map[string][]string{
		"created":   {"", "x", publicid.NewPost().String(), id + "/", id + "/" + id},
		"last_seen": {id, "yesterday/" + id, "2026-03-12T10:00:00Z/x", "/" + id, "2026-03-12T10:00:00Z"},
		"mrr":       {"x/" + id, "99999999999999999999/" + id, "1.5/" + id, "1/", "1"},
	} {
		for _, place := range places {
			cursor := n.Forged(t, "/v1/contacts?limit=1&sort="+sort, place)
			a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, "/v1/contacts?sort="+sort+"&cursor="+cursor, nil)
			require.Equal(t, []string{"cursor"}, a.Fields(), place)
		}
	}
}

func cursorOfDeleted(t *testing.T, n *tenant) {
	n.people(t, apptest.EveryTrait, apptest.EveryTrait, apptest.EveryTrait)
	page := n.Do(t, http.MethodGet, "/v1/contacts?limit=1&sort=mrr", nil)
	first := page.Body["data"].([]any)[0].(object)
	require.Equal(t, "c", first[label])
	n.Make(t, http.MethodDelete, "/v1/contacts/"+first["id"].(string), nil)
	require.Equal(t, "ba", n.find(t, "sort", "mrr", "cursor", page.Body["nextCursor"].(string)))
}
