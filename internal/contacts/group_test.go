package contacts_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/oapi-codegen/nullable"
	"github.com/stretchr/testify/require"

	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

func TestAContactThatIsIdentifiedTogetherWithOthers(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is written as alone":                          asAlone,
		"doesn't wait for another that somebody holds": heldContact,
		"is found where many others are new":           imported,
	})
}

func asAlone(t *testing.T, n *tenant) {
	other := n.on(t, "business")
	identifySome(t, n, func(ctx context.Context, id string, in contacts.Traits, _ bool) bool {
		_, created, err := n.App.Contacts.IdentifyContact(ctx, id, in)
		require.NoError(t, err)
		return created
	})
	identifySome(t, other, other.identifyAlone(t))
	for _, table := range []string{"contacts", "contact_documents", "events", "deliveries"} {
		require.NotEmpty(t, n.Contents(t, table))
		// The documents contain numbers that differ between organizations, so only their count is
		// compared.
		if table == "contact_documents" {
			require.Len(t, n.Contents(t, table), len(other.Contents(t, table)))
			continue
		}
		require.Equal(t, other.Contents(t, table), n.Contents(t, table), table)
	}
}

// identifying identifies a contact and returns whether it was created. Known is true for an
// existing contact.
type identifying func(ctx context.Context, id string, in contacts.Traits, known bool) (created bool)

// identifyAlone identifies each contact in a transaction of its own. A group does not accept a
// request with an idempotency key unless AnsweredBy was called. An existing contact without new
// traits uses no group, so the test identifies it with Keep, as a vote does.
func (n *tenant) identifyAlone(t *testing.T) identifying {
	t.Helper()
	return func(ctx context.Context, id string, in contacts.Traits, known bool) (created bool) {
		if known && reflect.DeepEqual(in, contacts.Traits{}) {
			require.NoError(t, n.App.Changes.Run(ctx, func(c *change.Change) error {
				_, err := n.App.Contacts.Keep(ctx, c, contacts.Person{ExternalUserID: &id, Create: true})
				return err
			}))
			return false
		}
		keyed, once := change.WithIdempotencyKey(ctx, sha256.Sum256([]byte(rand.Text())), [32]byte{})
		defer once.Abandon()
		_, created, err := n.App.Contacts.IdentifyContact(keyed, id, in)
		require.NoError(t, err)
		require.NoError(t, once.Commit(ctx, change.Answer{Status: http.StatusOK}))
		return created
	}
}

// identifySome identifies a contact with all traits and one without traits, twice, and then adds
// traits.
func identifySome(t *testing.T, n *tenant, identify identifying) {
	t.Helper()
	ctx := change.WithCaller(t.Context(), &change.Caller{Organization: n.Organization, User: n.Owner})
	n.Listen(t, event.ContactCreated, event.ContactUpdated)
	n.Listen(t, event.ContactCreated)
	all := contacts.Traits{
		Email: nullable.NewNullableWithValue("Ada@Example.com"), Name: nullable.NewNullableWithValue("Ada <b>"),
		Plan: nullable.NewNullableWithValue("pro"), MRRCents: nullable.NewNullableWithValue(int64(4900)),
		Currency: nullable.NewNullableWithValue("EUR"), Metadata: json.RawMessage(`{"z":"<a href=\"x\">&","b":1.0,"c":12345678901234567890}`),
	}
	for round := range 2 {
		for _, id := range []string{"all", "none"} {
			require.Equal(t, round == 0, identify(ctx, id, map[string]contacts.Traits{"all": all}[id], round > 0))
		}
	}
	require.False(t, identify(ctx, "none", contacts.Traits{Name: nullable.NewNullableWithValue("Bo")}, true))
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

// heldContact identifies a contact that another transaction locks, and others.
func heldContact(t *testing.T, n *tenant) {
	n.Identify(t, object{"externalUserId": "held"})
	c, err := pgx.Connect(t.Context(), n.App.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM contacts WHERE organization_id = $1 FOR UPDATE", n.Organization.ID.UUID())
	require.NoError(t, err)
	waiting := make(chan apptest.Answer, 1)
	go func() { waiting <- n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "held"}) }()
	for _, id := range []string{"a", "b", "a", "c"} {
		n.Identify(t, object{"externalUserId": id})
	}
	require.Empty(t, waiting)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, http.StatusOK, (<-waiting).Status)
}
