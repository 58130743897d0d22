package contacts_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/contacts"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

func TestAContactThatIsSeenIsReadAsEntReadsIt(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
	ctx, organization := fixture.NewOrganization(t, s)
	at := time.Now().UTC().Truncate(time.Microsecond)
	full := s.Client().Contact.Create().SetExternalUserID("full").SetEmail("ada@example.com").SetEmailHash([]byte("hash")).
		SetName("Ada").SetPlan("pro").SetMrrCents(4900).SetCurrency("EUR").SetMetadata(json.RawMessage(`{"z":1,"a":2}`)).
		SetSource("identify").SetConsentBasis("sdk_identify").
		SetFirstSeenAt(at).SetLastSeenAt(at).SetCreatedAt(at).SetUpdatedAt(at)
	bare := s.Client().Contact.Create().SetExternalUserID("bare").SetMetadata(json.RawMessage(`{}`)).
		SetSource("identify").SetConsentBasis("sdk_identify").
		SetFirstSeenAt(at).SetLastSeenAt(at).SetCreatedAt(at).SetUpdatedAt(at)
	for name, create := range map[string]interface{ ExecX(ctx context.Context) }{"full": full, "bare": bare} {
		create.ExecX(ctx)
		later := at.Add(time.Minute)
		seen := see(t, s, organization, name, later)
		require.Equal(t, later, seen.LastSeenAt)
		read, err := s.Client().Contact.Get(ctx, seen.ID)
		require.NoError(t, err)
		if read.EmailHash != nil && *read.EmailHash == nil {
			read.EmailHash = nil // Ent returns a pointer to nil for null
		}
		require.Equal(t, fields(t, read), fields(t, seen))
	}
}

// see marks one contact as seen and returns it, or nil if it was skipped.
func see(t *testing.T, s *postgres.DB, of publicid.Organization, name string, at time.Time, told ...string) *db.Contact {
	t.Helper()
	found, _, err := contacts.SeeContacts(postgres.WithOrganization(t.Context(), of), s, []string{"nobody", name, name}, at, told, 0)
	require.NoError(t, err)
	if len(found) == 0 {
		return nil
	}
	require.Len(t, found, 1)
	return found[0]
}

// fields is an entity as JSON, without Ent's internal fields.
func fields(t *testing.T, entity any) string {
	t.Helper()
	text, err := json.Marshal(entity)
	require.NoError(t, err)
	return string(text)
}

func TestTheTimeAContactWasSeenOnlyAdvances(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
	r := fixture.Seed(t, s)
	before, err := s.Client().Contact.Get(r.Ctx, r.Contact)
	require.NoError(t, err)
	seen := see(t, s, r.Organization, *before.ExternalUserID, before.LastSeenAt.Add(-time.Hour))
	require.Equal(t, before.LastSeenAt, seen.LastSeenAt)
}

func TestOnlyTheOrganizationsOwnContactIsSeen(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
	r := fixture.Seed(t, s)
	before, err := s.Client().Contact.Get(r.Ctx, r.Contact)
	require.NoError(t, err)
	for _, of := range []publicid.Organization{publicid.NewOrganization(), fixture.Seed(t, s).Organization} {
		if seen := see(t, s, of, *before.ExternalUserID, time.Now()); seen != nil { // the other organization's contact with the same external id
			require.Equal(t, of, seen.OrganizationID)
		}
	}
	after, err := s.Client().Contact.Get(r.Ctx, r.Contact)
	require.NoError(t, err)
	require.Equal(t, before.LastSeenAt, after.LastSeenAt)
}

func TestAContactThatCanBeToldATraitIsLeftToTheTransaction(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
	ctx, organization := fixture.NewOrganization(t, s)
	at := time.Now().UTC().Truncate(time.Microsecond)
	bare := s.Client().Contact.Create().SetExternalUserID("bare").SetMetadata(json.RawMessage(`{}`)).
		SetSource("identify").SetConsentBasis("sdk_identify").
		SetFirstSeenAt(at).SetLastSeenAt(at).SaveX(ctx)
	for _, told := range []string{"email", "name", "plan", "mrr_cents", "currency", "metadata"} {
		seen, incomplete, err := contacts.SeeContacts(postgres.WithOrganization(t.Context(), organization), s, []string{"nobody", "bare"}, at.Add(time.Hour), []string{told}, 0)
		require.NoError(t, err)
		require.Empty(t, seen, told)
		require.Equal(t, []string{"bare"}, incomplete, told)
	}
	require.Equal(t, at, s.Client().Contact.GetX(ctx, bare.ID).LastSeenAt)
	bare.Update().SetEmail("a@example.com").SetName("Ada").SetPlan("pro").SetMrrCents(1).SetCurrency("EUR").ExecX(ctx)
	require.NotNil(t, see(t, s, organization, "bare", at.Add(time.Hour), "email", "name", "plan", "mrr_cents", "currency"))
}

func TestContactsAreLockedByTheirExternalIDs(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
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
		found, err := contacts.LockContacts(ctx, tx, ids, len(`{"z":1,"a":2}`), skip)
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
			require.Equal(t, []bool{false, false}, []bool{found["nobody"].There, found["nobody"].Locked()})
			require.Equal(t, []bool{true, true, false}, []bool{found["large"].There, found["large"].Large, found["large"].Locked()})
			require.Equal(t, []bool{true, false, false}, []bool{found["held"].There, found["held"].Large, found["held"].Locked()})
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
