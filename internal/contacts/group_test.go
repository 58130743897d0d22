package contacts_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/oapi-codegen/nullable"
	"github.com/stretchr/testify/require"

	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/testkit"
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
	identifySome(t, n, n.App.Contacts)
	identifySome(t, other, n.App.Contacts.Alone())
	for _, table := range []string{"contacts", "contact_documents", "events", "deliveries"} {
		require.NotEmpty(t, n.Contents(t, table))
		// The numbers of a document are the organization's own.
		if table == "contact_documents" {
			require.Len(t, n.Contents(t, table), len(other.Contents(t, table)))
			continue
		}
		require.Equal(t, other.Contents(t, table), n.Contents(t, table), table)
	}
}

// identifySome identifies a contact of all traits and one of none, twice, and then adds to them.
func identifySome(t *testing.T, n *tenant, s *contacts.Service) {
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
			_, created, err := s.IdentifyContact(ctx, id, map[string]contacts.Traits{"all": all}[id])
			require.NoError(t, err)
			require.Equal(t, round == 0, created)
		}
	}
	_, created, err := s.IdentifyContact(ctx, "none", contacts.Traits{Name: nullable.NewNullableWithValue("Bo")})
	require.NoError(t, err)
	require.False(t, created)
}

// imported identifies many new contacts, known ones among them.
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

// heldContact identifies a contact that somebody holds, and others.
func heldContact(t *testing.T, n *tenant) {
	n.Identify(t, object{"externalUserId": "held"})
	c, err := pgx.Connect(t.Context(), n.App.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM contacts WHERE organization_id = $1 FOR UPDATE", n.Organization.ID.UUID())
	require.NoError(t, err)
	waiting := make(chan testkit.Answer, 1)
	go func() { waiting <- n.Do(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "held"}) }()
	for _, id := range []string{"a", "b", "a", "c"} {
		n.Identify(t, object{"externalUserId": id})
	}
	require.Empty(t, waiting)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, http.StatusOK, (<-waiting).Status)
}
