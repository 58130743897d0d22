package contacts_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/contacts"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// fields is an entity as JSON, without Ent's internal fields.
func fields(t *testing.T, entity any) string {
	t.Helper()
	text, err := json.Marshal(entity)
	require.NoError(t, err)
	return string(text)
}

func TestTheTimeAContactWasSeenOnlyAdvancesAndOnlyInItsOrganization(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	r, other := fixture.Seed(t, s), fixture.Seed(t, s)
	s.Client().Contact.UpdateOneID(r.Contact).SetExternalUserID("ada").ExecX(r.Ctx)
	before := s.Client().Contact.GetX(r.Ctx, r.Contact).LastSeenAt
	for _, test := range []struct {
		in   context.Context
		at   time.Duration
		want time.Duration
	}{{r.Ctx, -time.Hour, 0}, {other.Ctx, time.Hour, 0}, {r.Ctx, time.Hour, time.Hour}} {
		require.NoError(t, s.InTx(test.in, func(tx *db.Tx) error {
			found, err := contacts.SeeContacts(test.in, tx, []string{"ada"}, before.Add(test.at), 0, false)
			require.NoError(t, err)
			if require.Equal(t, test.in == r.Ctx, found[0].Locked()); found[0].Locked() {
				require.Equal(t, before.Add(test.want), found[0].LastSeenAt)
			}
			return nil
		}))
		require.Equal(t, before.Add(test.want), s.Client().Contact.GetX(r.Ctx, r.Contact).LastSeenAt)
	}
}

func TestContactsAreSeenAndLockedByTheirExternalIDs(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	ctx, _ := fixture.NewOrganization(t, s)
	create := func(id, metadata string) *db.ContactCreate {
		return s.Client().Contact.Create().SetExternalUserID(id).SetMetadata(json.RawMessage(metadata)).
			SetSource("identify").SetConsentBasis("sdk_identify").SetFirstSeenAt(time.Now()).SetLastSeenAt(time.Now())
	}
	create("bare", `{}`).ExecX(ctx)
	create("full", `{"z":1,"a":2}`).SetEmail("ada@example.com").SetEmailHash([]byte("hash")).SetName("Ada").SetPlan("pro").
		SetMrrCents(4900).SetCurrency("EUR").ExecX(ctx)
	create("large", `{"a":"0123456789"}`).ExecX(ctx)
	held := create("held", `{}`).SaveX(ctx)
	ids := []string{"large", "nobody", "held", "full", "bare"}
	lock := func(tx *db.Tx, skip bool) map[string]*contacts.FoundContact {
		found, err := contacts.SeeContacts(ctx, tx, ids, time.Now(), len(`{"z":1,"a":2}`), skip)
		require.NoError(t, err)
		byID := map[string]*contacts.FoundContact{}
		for _, f := range found {
			byID[f.Wanted] = f
		}
		require.Len(t, byID, len(ids))
		return byID
	}
	require.NoError(t, s.InTx(ctx, func(other *db.Tx) error {
		other.Contact.UpdateOne(held).SetName("Held").ExecX(ctx)
		return s.InTx(ctx, func(tx *db.Tx) error {
			found := lock(tx, true)
			require.Equal(t, []bool{false, false}, []bool{found["nobody"].Known, found["nobody"].Locked()})
			require.Equal(t, []bool{true, true, false}, []bool{found["large"].Known, found["large"].Large, found["large"].Locked()})
			require.Equal(t, []bool{true, false, false}, []bool{found["held"].Known, found["held"].Large, found["held"].Locked()})
			var rows []map[string]any
			for _, name := range []string{"bare", "full"} {
				require.True(t, found[name].Locked())
				requireReadAsByEnt(ctx, t, tx, &found[name].Contact)
				rows = append(rows, contacts.Columns(found[name].ID.UUID(), tx.Contact.UpdateOneID(found[name].ID).SetName(name+"'s").Mutation()))
			}
			updated, err := contacts.UpdateContacts(ctx, tx, rows)
			require.NoError(t, err)
			require.Len(t, updated, 2)
			for _, c := range updated {
				require.Equal(t, *c.ExternalUserID+"'s", *c.Name)
				requireReadAsByEnt(ctx, t, tx, c)
			}
			return nil
		})
	}))
	require.NoError(t, s.InTx(ctx, func(tx *db.Tx) error {
		require.Equal(t, "Held", *lock(tx, false)["held"].Name)
		return nil
	}))
}

func requireReadAsByEnt(ctx context.Context, t *testing.T, tx *db.Tx, c *db.Contact) {
	t.Helper()
	read := tx.Contact.GetX(ctx, c.ID)
	if read.EmailHash != nil && *read.EmailHash == nil {
		read.EmailHash = nil // Ent returns a pointer to nil for null
	}
	require.Equal(t, fields(t, read), fields(t, c))
}
