package store_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/testkit"
)

func TestVotesFromBeforeRevenueWasCountedAreCountedByTheMigration(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s := open(t, url)
	r, c := seed(t, s), connect(t, url)
	post := s.Client().Post.Create().SetBoardID(r.board).SetTitle("x").SetSlug("x").SaveX(r.ctx).ID
	var payers []publicid.Contact
	for _, cents := range []int64{0, 300, 4900} {
		payers = append(payers, s.Client().Contact.Create().SetMetadata(json.RawMessage(`{}`)).SetSource("admin").
			SetConsentBasis("admin_created").SetMrrCents(cents).SetCurrency("EUR").SaveX(r.ctx).ID)
	}
	payers = append(payers, s.Client().Contact.Create().SetMetadata(json.RawMessage(`{}`)).SetSource("admin").
		SetConsentBasis("admin_created").SaveX(r.ctx).ID)
	_, err := c.Exec(t.Context(), "ALTER TABLE votes DISABLE TRIGGER vote_copies_revenue")
	require.NoError(t, err)
	for _, payer := range payers {
		s.Client().Vote.Create().SetPostID(post).SetContactID(payer).ExecX(r.ctx)
	}
	counted := func() []string {
		return texts(t, c, "SELECT mrr_cents || ' ' || currency FROM post_revenues WHERE post_id = $1", post)
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

// Revenue costs nothing where it cannot change. Its triggers do not fire for a member's vote, or for
// a contact that is seen again with the same revenue.
func TestRevenueTriggersFireOnlyForChangesThatAffectRevenue(t *testing.T) {
	t.Parallel()
	c := connect(t, testkit.Database(t))
	require.Equal(t, []string{
		"CREATE TRIGGER contact_passes_revenue_on AFTER UPDATE OF mrr_cents, currency ON contacts FOR EACH ROW " +
			"WHEN (old.mrr_cents IS DISTINCT FROM new.mrr_cents OR old.currency::text IS DISTINCT FROM new.currency::text) EXECUTE FUNCTION pass_revenue_on()",
		"CREATE TRIGGER vote_copies_revenue BEFORE INSERT ON votes FOR EACH ROW WHEN (new.contact_id IS NOT NULL) EXECUTE FUNCTION copy_revenue()",
		"CREATE TRIGGER vote_counts_revenue AFTER INSERT ON votes FOR EACH ROW WHEN (new.mrr_cents > 0) EXECUTE FUNCTION count_revenue()",
	}, texts(t, c, `SELECT pg_get_triggerdef(oid, true) FROM pg_trigger
		WHERE tgrelid IN ('votes'::regclass, 'contacts'::regclass) AND tgname LIKE '%revenue%' AND tgtype & 1 = 1 ORDER BY tgname`))
}
