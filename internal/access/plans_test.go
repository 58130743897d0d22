package access_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/store"
	"earshot/internal/testkit"
)

// Guests are as many as comment. What is asked of members, some of it while the organization is
// locked, looks at none of them.
func TestWhatIsAskedOfMembersGoesPastGuests(t *testing.T) {
	t.Parallel()
	s, c, asked := testkit.Asked(t)
	u := access.New(s, change.NewRunner(s, nil, nil, change.Settings{}), slog.New(slog.DiscardHandler))
	org, _, err := u.CreateOrganization(t.Context(),
		access.NewOrganization{Name: "Acme", Plan: "business", OwnerEmail: "owner@example.com", OwnerName: "Olive Owner"})
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), `
		INSERT INTO users (id, organization_id, created_at, updated_at, email, name, role, kind)
			SELECT gen_random_uuid(), o.id, now(), now(), n::text, '', NULL, 'guest' FROM organizations o, generate_series(1, 20000) n;
		ANALYZE; SET plan_cache_mode = force_generic_plan`)
	require.NoError(t, err)

	ctx := store.WithOrganization(t.Context(), org.ID)
	made, err := u.EnlistMember(ctx, access.NewMember{Email: "bo@example.com", Name: "Bo", Role: "owner"})
	require.NoError(t, err)
	require.NoError(t, u.DelistMember(ctx, made.ID))
	_, err = u.EnlistMember(ctx, access.NewMember{Email: "Bo@example.com", Name: "Bo", Role: "owner"})
	require.NoError(t, err)
	_, err = u.MemberByEmail(ctx, "bo@example.com")
	require.NoError(t, err)
	_, err = u.Members(ctx, page.Query{})
	require.NoError(t, err)
	_, _, err = u.FindOrganization(ctx, &org.ID)
	require.NoError(t, err)

	found := map[string]bool{}
	for _, q := range asked.All() {
		if !strings.HasPrefix(q.SQL, "SELECT") || !strings.Contains(q.SQL, `FROM "users"`) {
			continue
		}
		plan := testkit.KeptPlan(t, c, q)
		if !strings.Contains(plan, " on users") {
			continue // nothing is looked at
		}
		for _, index := range []string{"users_pkey", "user_organization_id_id", "users_by_address"} {
			if strings.Contains(plan, index) {
				found[index] = true
				plan = ""
			}
		}
		require.Empty(t, plan, q.SQL)
	}
	require.True(t, found["user_organization_id_id"] && found["users_by_address"], "%v", found)
}
