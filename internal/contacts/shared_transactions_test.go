package contacts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

func TestAContactThatIsIdentifiedTogetherWithOthers(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is written as alone":                          asAlone,
		"doesn't wait for another that somebody holds": heldContact,
		"is found where many others are new":           imported,
		"is created once by several requests":          sameContact,
	})
}

// asAlone identifies contacts in shared transactions, and one after the other. A vote identifies its
// contact, too.
func asAlone(t *testing.T, n *tenant) {
	other := n.on(t, "business")
	all := object{
		"email": "Ada@Example.com", "name": "Ada <b>", "plan": "pro", "mrrCents": 4900, "currency": "EUR",
		"metadata": object{"z": `<a href="x">&`, "b": 1.5, "c": json.Number("12345678901234567890")},
	}
	const count = 40
	for _, in := range []*tenant{n, other} {
		in.Listen(t, event.ContactCreated, event.ContactUpdated)
		in.Listen(t, event.ContactCreated)
		post := in.Post(t)
		// Each round adds traits: a new contact, a known one without news, and one that learns.
		for round, traits := range []object{{"name": "Bo"}, {}, all} {
			identify := func(i int) apptest.Answer {
				body := maps.Clone(traits)
				body["externalUserId"] = fmt.Sprint("of ", i)
				if i%10 == 9 && round < 2 {
					return in.Do(t, http.MethodPost, post+"/votes", object{"externalUserId": body["externalUserId"], "createContact": true})
				}
				return in.Do(t, http.MethodPost, "/v1/contacts/identify", body)
			}
			status := map[bool]int{true: http.StatusCreated, false: http.StatusOK}[round == 0]
			if in == n {
				var together sync.WaitGroup
				for i := range count {
					together.Go(func() { assert.Equal(t, status, identify(i).Status) })
				}
				together.Wait()
				continue
			}
			for i := range count {
				require.Equal(t, status, identify(i).Status)
			}
		}
	}
	for _, table := range []string{"contacts", "votes", "deliveries"} {
		require.NotEmpty(t, n.Contents(t, table))
		require.Equal(t, other.Contents(t, table), n.Contents(t, table), table)
	}
	for _, table := range []string{"contact_documents", "events"} { // Their numbers depend on the order.
		require.Len(t, n.Contents(t, table), len(other.Contents(t, table)))
	}
}

// imported identifies many new contacts, with existing ones among them.
func imported(t *testing.T, n *tenant) {
	n.Listen(t, event.ContactCreated)
	n.Identify(t, object{"externalUserId": "known", "name": "Ada"})
	for i := range 100 {
		a := n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": fmt.Sprint("new ", i)})
		require.Equal(t, http.StatusCreated, a.Status)
		if i%40 != 39 {
			continue
		}
		known := n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "known", "name": "Bo"})
		require.Equal(t, http.StatusOK, known.Status)
		require.Equal(t, "Ada", known.Data()["name"])
		filled := n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "known", "plan": "pro"})
		require.Equal(t, http.StatusOK, filled.Status)
		require.Equal(t, "pro", filled.Data()["plan"])
	}
	require.Len(t, n.Payloads(t, event.ContactCreated), 101, "one each")
}

// sameContact identifies one contact by several requests at a time. It is new, then known, then learns several traits.
func sameContact(t *testing.T, n *tenant) {
	n.Listen(t, event.ContactCreated, event.ContactUpdated)
	for round, traits := range [][]object{{{"name": "Ada"}}, {{"name": "Bo"}}, {{}, {"plan": "pro"}, {"mrrCents": 1, "currency": "EUR"}, {"metadata": object{"a": 1}}}} {
		statuses := make([]int, 16)
		var all sync.WaitGroup
		for i := range statuses {
			all.Go(func() {
				statuses[i] = n.Do(t, http.MethodPost, "/v1/contacts/identify", apptest.With("u-1", traits[i%len(traits)])).Status
			})
		}
		all.Wait()
		slices.Sort(statuses)
		last := map[bool]int{true: http.StatusCreated, false: http.StatusOK}[round == 0]
		require.Equal(t, append(slices.Repeat([]int{http.StatusOK}, 15), last), statuses)
	}
	require.Len(t, n.Payloads(t, event.ContactCreated), 1)
	require.Len(t, n.Payloads(t, event.ContactUpdated), 3, "one for each trait")
	got := n.Identify(t, object{"externalUserId": "u-1"})
	require.Equal(t, `"Ada" "pro" 1 "EUR" {"a":1}`, encoded(t, got["name"])+" "+encoded(t, got["plan"])+" "+encoded(t, got["mrrCents"])+" "+
		encoded(t, got["currency"])+" "+encoded(t, got["metadata"]))
}

// heldContact identifies a contact that another transaction changes, and others.
func heldContact(t *testing.T, n *tenant) {
	n.Identify(t, object{"externalUserId": "held"})
	c, err := pgx.Connect(t.Context(), n.App.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "UPDATE contacts SET name = 'Ada' WHERE organization_id = $1", n.Organization.ID.UUID())
	require.NoError(t, err)
	waiting := make(chan apptest.Answer, 1)
	go func() { waiting <- n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "held"}) }()
	for _, id := range []string{"a", "b", "a", "c"} {
		n.Identify(t, object{"externalUserId": id})
	}
	require.Empty(t, waiting)
	require.NoError(t, tx.Commit(t.Context()))
	got := <-waiting
	require.Equal(t, http.StatusOK, got.Status)
	require.Equal(t, "Ada", got.Data()["name"])
}
