package contacts_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestAnOptIn(t *testing.T) {
	t.Parallel()
	togetherOn(t, capped.Start(t), map[string]func(*testing.T, *tenant){
		"makes one contact of an address, however many links are used at once": optInsAtOnce,
		"finds the oldest contact with the address, and changes nothing of it": optInOfAKnownOne,
		"is left out at the cap of the plan":                                   optInAtTheCap,
	})
}

// optIn runs OptIn in a change of its own.
func (n *tenant) optIn(ctx context.Context, email, source string) (*db.Contact, error) {
	as := change.WithCaller(ctx, &change.Caller{Organization: n.Organization})
	return change.Run(as, n.App.Changes, change.Request[*db.Contact]{}, func(c *change.Change) (*db.Contact, error) {
		return n.App.Contacts.OptIn(ctx, c, email, "Ada", source)
	})
}

func optInsAtOnce(t *testing.T, n *tenant) {
	receiver := testkit.NewReceiver(t)
	n.Register(t, receiver, "contact.created")
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			found, err := n.optIn(n.Context(t.Context()), " Ada@example.com", "public_vote")
			if err == nil {
				ids[i] = found.ID.String()
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		require.NotEmpty(t, id)
		require.Equal(t, ids[0], id)
	}
	require.Len(t, n.Contents(t, "contacts"), 1)
	require.Len(t, n.Contents(t, "events"), 1)
	made := n.Make(t, http.MethodGet, "/v1/contacts/"+ids[0], nil)
	require.Equal(t, "ada@example.com", made["email"])
	require.Equal(t, "public_vote", made["source"])
	require.Equal(t, "public_interaction_opt_in", made["consentBasis"])
}

func optInOfAKnownOne(t *testing.T, n *tenant) {
	first := n.ID(t, "/v1/contacts", object{"email": "ada@example.com"})
	n.ID(t, "/v1/contacts", object{"email": "ada@example.com", "name": "Another"})
	unchanged := n.Watch(t)
	found, err := n.optIn(n.Context(t.Context()), "ADA@example.com", "public_post")
	require.NoError(t, err)
	require.Equal(t, first, found.ID.String())
	unchanged(t)
}

func optInAtTheCap(t *testing.T, n *tenant) {
	n = n.on(t, "free")
	for _, name := range []string{"first", "second", "third"} {
		n.ID(t, "/v1/contacts", object{"email": name + "@example.com"})
	}
	found, err := n.optIn(n.Context(t.Context()), "ada@example.com", "public_comment")
	require.NoError(t, err)
	require.Nil(t, found)
	found, err = n.optIn(n.Context(t.Context()), "first@example.com", "public_comment")
	require.NoError(t, err)
	require.NotNil(t, found)
}

func TestAContactsSourceAndConsentBasisAreImmutableInTheDatabase(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	id := n.ID(t, "/v1/contacts", object{"email": "ada@example.com"})
	const own = " WHERE organization_id = $1"
	for _, set := range []string{"source = 'identify'", "consent_basis = 'sdk_identify'", "source = 'x', consent_basis = 'y', name = 'z'"} {
		_, err := n.App.Pool.Exec(t.Context(), "UPDATE contacts SET "+set+own, n.Organization.ID.UUID())
		var refused *pgconn.PgError
		require.True(t, errors.As(err, &refused), set)
		require.Contains(t, refused.Message, "immutable")
	}
	// Writing the same values is no change, and all other columns may change.
	_, err := n.App.Pool.Exec(t.Context(), "UPDATE contacts SET source = source, consent_basis = consent_basis, name = 'Ada'"+own, n.Organization.ID.UUID())
	require.NoError(t, err)
	require.Equal(t, "Ada", n.Make(t, http.MethodGet, "/v1/contacts/"+id, nil)["name"])
	n.Make(t, http.MethodPatch, "/v1/contacts/"+id, object{"email": "eve@example.com"})
	n.Make(t, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "u", "email": "u@example.com"})
}
