package migrate_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

func TestVotesFromBeforeRevenueWasCountedAreCountedByTheMigration(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s := fixture.Open(t, url)
	r, c := fixture.Seed(t, s), fixture.Connect(t, url)
	post := s.Client().Post.Create().SetBoardID(r.Board).SetTitle("x").SetSlug("x").SaveX(r.Ctx).ID
	var payers []publicid.Contact
	for _, cents := range []int64{0, 300, 4900} {
		payers = append(payers, s.Client().Contact.Create().SetMetadata(json.RawMessage(`{}`)).SetSource("admin").
			SetConsentBasis("admin_created").SetMrrCents(cents).SetCurrency("EUR").SaveX(r.Ctx).ID)
	}
	payers = append(payers, s.Client().Contact.Create().SetMetadata(json.RawMessage(`{}`)).SetSource("admin").
		SetConsentBasis("admin_created").SaveX(r.Ctx).ID)
	_, err := c.Exec(t.Context(), "ALTER TABLE votes DISABLE TRIGGER vote_copies_revenue")
	require.NoError(t, err)
	for _, payer := range payers {
		s.Client().Vote.Create().SetPostID(post).SetContactID(payer).ExecX(r.Ctx)
	}
	counted := func() []string {
		return fixture.Texts(t, c, "SELECT mrr_cents || ' ' || currency FROM post_revenues WHERE post_id = $1", post)
	}
	require.Empty(t, counted())
	_, err = c.Exec(t.Context(), "ALTER TABLE votes ENABLE TRIGGER vote_copies_revenue")
	require.NoError(t, err)
	for range 2 { // it may be cut off, and run again
		_, err = c.Exec(t.Context(), up(t, "revenues_of_votes"))
		require.NoError(t, err)
		require.Equal(t, []string{"5200 EUR"}, counted())
	}
}

// Each statement changes the revenue of a post once, however many votes it inserts. Otherwise each vote
// would look through all earlier versions of the same row.
func TestTheRevenueOfManyVotesIsCountedOnce(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s := fixture.Open(t, url)
	r, c := fixture.Seed(t, s), fixture.Connect(t, url)
	post := s.Client().Post.Create().SetBoardID(r.Board).SetTitle("x").SetSlug("x").SaveX(r.Ctx).ID
	for range 20 {
		s.Client().Contact.Create().SetMetadata(json.RawMessage(`{}`)).SetSource("admin").
			SetConsentBasis("admin_created").SetMrrCents(100).SetCurrency("EUR").SaveX(r.Ctx)
	}
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	tag, err := tx.Exec(t.Context(), `INSERT INTO votes (id, organization_id, post_id, contact_id, created_at)
		SELECT gen_random_uuid(), organization_id, $1, id, now() FROM contacts WHERE mrr_cents = 100`, post)
	require.NoError(t, err)
	require.EqualValues(t, 20, tag.RowsAffected())
	var changes, cents int
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT pg_stat_get_xact_tuples_inserted(c) + pg_stat_get_xact_tuples_updated(c),
		(SELECT mrr_cents FROM post_revenues WHERE post_id = $1) FROM (SELECT 'post_revenues'::regclass AS c) AS of`, post).Scan(&changes, &cents))
	require.Equal(t, []int{1, 2000}, []int{changes, cents})
}

// Revenue costs nothing where it cannot change. Its triggers do not fire for a member's vote, or for
// a contact that is seen again with the same revenue.
func TestRevenueTriggersFireOnlyForChangesThatAffectRevenue(t *testing.T) {
	t.Parallel()
	c := fixture.Connect(t, testkit.Database(t))
	require.Equal(t, []string{
		"CREATE TRIGGER contact_passes_revenue_on AFTER UPDATE OF mrr_cents, currency ON contacts FOR EACH ROW " +
			"WHEN (old.mrr_cents IS DISTINCT FROM new.mrr_cents OR old.currency::text IS DISTINCT FROM new.currency::text) EXECUTE FUNCTION pass_revenue_on()",
		"CREATE TRIGGER vote_copies_revenue BEFORE INSERT ON votes FOR EACH ROW WHEN (new.contact_id IS NOT NULL) EXECUTE FUNCTION copy_revenue()",
	}, fixture.Texts(t, c, `SELECT pg_get_triggerdef(oid, true) FROM pg_trigger
		WHERE tgrelid IN ('votes'::regclass, 'contacts'::regclass) AND tgname LIKE '%revenue%' AND tgtype & 1 = 1 ORDER BY tgname`))
}
