package feedback_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/feedback"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
)

// Postgres caches the plan of a board's list. The plan must therefore suit a board with all posts
// and a board with none.
func TestTheKeptPlanOfABoardsListReadsAndSortsOnlyAPage(t *testing.T) {
	t.Parallel()
	s, c, last := testkit.Asked(t)
	// A large board of one organization, and a hundred boards of another with one post each.
	_, err := c.Exec(t.Context(), `
		INSERT INTO organizations (id, created_at, updated_at, name) SELECT gen_random_uuid(), now(), now(), n::text FROM generate_series(0, 1) n;
		INSERT INTO boards (id, organization_id, created_at, updated_at, name, slug)
			SELECT gen_random_uuid(), o.id, now(), now(), n::text, n::text FROM organizations o, generate_series(0, 99) n WHERE o.name = '1' OR n = 0;
		INSERT INTO posts (id, organization_id, created_at, updated_at, title, slug, last_activity_at, vote_count, board_id)
			SELECT gen_random_uuid(), b.organization_id, now(), now(), 'x', n::text, now(), n % 7, b.id
			FROM boards b JOIN organizations o ON o.id = b.organization_id, generate_series(1, 8000) n WHERE o.name = '0' OR n = 1;
		ANALYZE; SET plan_cache_mode = force_generic_plan`)
	require.NoError(t, err)
	ctx := postgres.WithOrganization(t.Context(), publicid.NewOrganization())
	for column, value := range map[string]any{"": nil, post.FieldVoteCount: int64(3), post.FieldLastActivityAt: time.Now()} {
		by, place := []string{post.FieldID}, []any{publicid.NewPost()}
		if column != "" {
			by, place = []string{column, post.FieldID}, []any{value, publicid.NewPost()}
		}
		for _, behind := range [][]any{nil, place} {
			of := feedback.AlongBoard(publicid.NewBoard(), by, behind)
			of.Limit = 26
			_, err := feedback.PostPages.Read(ctx, s, of)
			require.NoError(t, err)
			plan := testkit.KeptPlan(t, c, last.Last())
			testkit.RequireIndexed(t, plan, "posts", "board_id")
			require.NotContains(t, plan, "Sort Key: posts") // a sort of tags is allowed
		}
	}
}

// A poll reads only the changes, and a read of the whole list sorts no rows.
func TestAPageInChangeOrderReadsOnlyTheChangedRows(t *testing.T) {
	t.Parallel()
	s, c, last := testkit.Asked(t)
	of := publicid.NewOrganization()
	_, err := c.Exec(t.Context(), fmt.Sprintf(`
		INSERT INTO organizations (id, created_at, updated_at, name)
			SELECT CASE n WHEN 0 THEN '%s' ELSE gen_random_uuid() END, now(), now(), n::text FROM generate_series(0, 1) n;
		INSERT INTO boards (id, organization_id, created_at, updated_at, name, slug)
			SELECT gen_random_uuid(), id, now(), now(), 'b', 'b' FROM organizations;
		INSERT INTO posts (id, organization_id, created_at, updated_at, title, slug, last_activity_at, board_id, changed_in)
			SELECT gen_random_uuid(), b.organization_id, now(), now(), 'x', n::text, now(), b.id, n FROM boards b, generate_series(1, 8000) n;
		ANALYZE`, of.UUID()))
	require.NoError(t, err)
	for _, place := range []int64{0, 4000, 7990, 9000} {
		_, err := feedback.PostPages.Read(postgres.WithOrganization(t.Context(), of), s, page.Selection[predicate.Post]{
			Where: []predicate.Post{
				post.DeletedAtIsNil(), post.UpdatedAtGTE(time.Unix(0, 0)),
				page.ChangedBetween[predicate.Post](page.ChangePlace{In: place, ID: publicid.NewPost().UUID()}, 9001),
			},
			Order: page.ByChange(post.Table), Limit: 26, Most: page.FirstRead,
		})
		require.NoError(t, err)
		rows, err := c.Query(t.Context(), "EXPLAIN "+last.Last().SQL, last.Last().Args...)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		plan := strings.Join(lines, "\n")
		testkit.RequireIndexed(t, plan, "posts", "changed_in")
		require.NotContains(t, plan, "Sort Key: posts")
	}
}
