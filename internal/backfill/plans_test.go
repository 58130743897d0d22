package backfill_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/backfill"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
)

// A page of a backfill reads the activity while it holds the organization's lock. The query must
// therefore read only matching rows.
func TestALookForActivityGoesAlongIndexes(t *testing.T) {
	t.Parallel()
	s, c, last := testkit.Asked(t)
	of := publicid.NewOrganization()
	// One member has 20,000 posts, and 20 of 2,000 guests have one post each. An author thus has a
	// thousand posts on average, and a plan based on the average would read all posts.
	_, err := c.Exec(t.Context(), fmt.Sprintf(`
		INSERT INTO organizations (id, created_at, updated_at, name) VALUES ('%s', now(), now(), 'x');
		INSERT INTO boards (id, organization_id, created_at, updated_at, name, slug) SELECT gen_random_uuid(), id, now(), now(), 'x', 'x' FROM organizations;
		INSERT INTO users (id, organization_id, email, name, role, kind, email_hash, created_at, updated_at)
			SELECT gen_random_uuid(), id, n::text, '', NULL, 'guest', sha256(n::text::bytea), now(), now() FROM organizations, generate_series(1, 2000) n;
		INSERT INTO users (id, organization_id, email, name, role, created_at, updated_at)
			SELECT gen_random_uuid(), id, 'owner', '', 'owner', now(), now() FROM organizations;
		INSERT INTO posts (id, organization_id, created_at, updated_at, title, slug, last_activity_at, board_id, author_user_id)
			SELECT gen_random_uuid(), b.organization_id, now(), now(), 'x', u.email || ' ' || n, now(), b.id, u.id
			FROM boards b, users u, generate_series(1, 20000) n WHERE u.kind = 'member' OR n = 1 AND u.email::int <= 20;
		INSERT INTO votes (id, organization_id, created_at, post_id, email_hash)
			SELECT gen_random_uuid(), p.organization_id, now(), p.id, u.email_hash FROM posts p JOIN users u ON u.id = p.author_user_id AND u.kind = 'guest';
		INSERT INTO comments (id, organization_id, created_at, updated_at, post_id, body_text, author_user_id, email_hash)
			SELECT gen_random_uuid(), p.organization_id, now(), now(), p.id, 'x', u.id, u.email_hash FROM posts p JOIN users u ON u.id = p.author_user_id AND u.kind = 'guest';
		ANALYZE; SET plan_cache_mode = force_generic_plan`, of.UUID()))
	require.NoError(t, err)
	var hashes [][]byte
	require.NoError(t, c.QueryRow(t.Context(), "SELECT array_agg(email_hash) FROM (SELECT email_hash FROM users WHERE kind = 'guest' ORDER BY length(email), email LIMIT 100) u").Scan(&hashes))
	ctx := postgres.WithOrganization(t.Context(), of)
	require.NoError(t, s.InTx(ctx, func(tx *db.Tx) error {
		found, err := backfill.VisitorsActivity(ctx, tx, hashes, time.Now().Add(time.Hour))
		require.Len(t, found, 20)
		return err
	}))
	for _, q := range last.All() {
		if strings.Contains(q.SQL, "public_post") {
			testkit.RequireIndexed(t, testkit.KeptPlan(t, c, q), "posts", "author_user_id")
			return
		}
	}
	require.Fail(t, "nothing was asked")
}
