package feedback_test

import (
	"strings"
	"testing"

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

func TestTheListByRevenueReadsAndSortsOnlyAPage(t *testing.T) {
	t.Parallel()
	s, c, last := testkit.Asked(t)
	// A board of 5,000 posts, each with another revenue.
	_, err := c.Exec(t.Context(), `
		INSERT INTO organizations (id, created_at, updated_at, name) VALUES (gen_random_uuid(), now(), now(), 'x');
		INSERT INTO boards (id, organization_id, created_at, updated_at, name, slug) SELECT gen_random_uuid(), id, now(), now(), 'x', 'x' FROM organizations;
		INSERT INTO posts (id, organization_id, created_at, updated_at, title, slug, last_activity_at, board_id)
			SELECT gen_random_uuid(), organization_id, now(), now(), 'x', n::text, now(), id FROM boards, generate_series(1, 5000) n;
		INSERT INTO post_revenues (organization_id, board_id, post_id, currency, mrr_cents) SELECT organization_id, board_id, id, 'EUR', slug::int FROM posts;
		ANALYZE`)
	require.NoError(t, err)
	var of publicid.Organization
	var board publicid.Board
	var some publicid.Post
	require.NoError(t, c.QueryRow(t.Context(), "SELECT b.organization_id, r.board_id, r.post_id FROM post_revenues r JOIN boards b ON b.id = r.board_id WHERE r.mrr_cents = 2500").Scan(&of, &board, &some))
	for _, behind := range []*publicid.Post{nil, &some} {
		_, err := feedback.PostPages.Read(postgres.WithOrganization(t.Context(), of), s, page.Selection[predicate.Post]{
			Where: []predicate.Post{post.BoardID(board), post.DeletedAtIsNil(), feedback.PaidFor(board, "EUR", 2500, behind)},
			Order: feedback.ByPostRevenue, Also: []string{feedback.RevenueColumn}, Limit: 26,
		})
		require.NoError(t, err)
		rows, err := c.Query(t.Context(), "EXPLAIN "+last.Last().SQL, last.Last().Args...)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		plan := strings.Join(lines, "\n")
		testkit.RequireIndexed(t, plan, "post_revenues", "currency")
		require.NotContains(t, plan, "Sort Key: post_revenues", plan)
		require.NotContains(t, plan, "Seq Scan on posts", plan)
	}
}
