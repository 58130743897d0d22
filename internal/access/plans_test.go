package access_test

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/testkit"
)

// An organization has a guest for each visitor that comments. Queries about members must not read
// these rows, because some run under the organization's lock. The absence of a Seq Scan proves too
// little, because another index covers guests and members.
func TestMemberQueriesReadNoGuests(t *testing.T) {
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

	ctx := postgres.WithOrganization(t.Context(), org.ID)
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

	plans := 0
	for _, q := range asked.All() {
		if !strings.HasPrefix(q.SQL, "SELECT") || !strings.Contains(q.SQL, `FROM "users"`) {
			continue
		}
		plan := testkit.KeptPlan(t, c, q)
		if !strings.Contains(plan, " on users") {
			continue // this plan reads no users
		}
		require.NotContains(t, plan, "Seq Scan on users", q.SQL)
		var used []string
		for _, scan := range indexScan.FindAllStringSubmatch(plan, -1) {
			used = append(used, scan[1])
		}
		var n int
		require.NoError(t, c.QueryRow(t.Context(), pastGuestsSQL, used).Scan(&n))
		require.Positive(t, n, "%s\n%s", q.SQL, plan)
		plans++
	}
	require.Greater(t, plans, 1)
}

var indexScan = regexp.MustCompile(`(?:Index (?:Only )?Scan (?:Backward )?using|Bitmap Index Scan on) (\w+)`)

// pastGuestsSQL counts the indexes that select a single user or contain only members.
const pastGuestsSQL = `SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = 'users'::regclass AND relname::text = ANY($1) AND (indisprimary OR pg_get_expr(indpred, indrelid) ~ 'role|kind')`
