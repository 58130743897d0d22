package feedback_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/contacts"
	"earshot/internal/feedback"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// Postgres keeps the plans of these statements, from an empty database to a large one. One organization
// has 20,000 posts, one of which has 20,000 votes.
func TestTheKeptPlansOfPostsVotesAndContactsReadOnlyTheirRows(t *testing.T) {
	t.Parallel()
	updates := regexp.MustCompile(`\bUPDATE (posts|votes|contacts)\b`)
	for name, rows := range map[string]int{"in an empty database": 0, "in a large one": 20_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c, asked := testkit.Asked(t)
			of := publicid.NewOrganization()
			_, err := c.Exec(t.Context(), fmt.Sprintf(`
				INSERT INTO organizations (id, created_at, updated_at, name) VALUES ('%s', now(), now(), 'x');
				INSERT INTO boards (id, organization_id, created_at, updated_at, name, slug) SELECT gen_random_uuid(), id, now(), now(), 'x', 'x' FROM organizations;
				INSERT INTO posts (id, organization_id, created_at, updated_at, title, slug, last_activity_at, board_id)
					SELECT gen_random_uuid(), b.organization_id, now(), now(), 'x', n::text, now(), b.id FROM boards b, generate_series(1, %[2]d) n;
				INSERT INTO contacts (id, organization_id, created_at, updated_at, external_user_id, metadata, source, consent_basis, first_seen_at, last_seen_at)
					SELECT gen_random_uuid(), o.id, now(), now(), n::text, '{}', 'identify', 'sdk_identify', now(), now() FROM organizations o, generate_series(1, %[2]d) n;
				INSERT INTO votes (id, organization_id, created_at, post_id, contact_id, email_hash)
					SELECT gen_random_uuid(), c.organization_id, now(), (SELECT id FROM posts LIMIT 1), c.id, sha256(c.external_user_id::bytea) FROM contacts c;
				SET plan_cache_mode = force_generic_plan`, of.UUID(), rows))
			require.NoError(t, err)
			if rows > 0 { // Postgres makes no statistics of a table without rows.
				_, err = c.Exec(t.Context(), "ANALYZE")
				require.NoError(t, err)
			}
			ctx := postgres.WithOrganization(t.Context(), of)
			require.NoError(t, s.InTx(ctx, func(tx *db.Tx) error {
				post, user, contact := publicid.NewPost(), publicid.NewUser(), publicid.NewContact()
				_, err := feedback.LockPlaces(ctx, tx, []publicid.Post{post}, false)
				require.NoError(t, err)
				_, err = feedback.LookForVotes(ctx, tx, []feedback.VoteLook{{Post: post, Member: &user, Contact: &contact, Hashes: [][]byte{{1}}}})
				require.NoError(t, err)
				_, err = feedback.KeepPostPlaces(ctx, tx, []feedback.PostSlug{{Board: publicid.NewBoard(), Slug: "x"}}, []publicid.Contact{contact}, false)
				require.NoError(t, err)
				_, err = contacts.SeeContacts(ctx, tx, []string{"x"}, time.Now(), 1, false)
				require.NoError(t, err)
				_, err = contacts.UpdateContacts(ctx, tx, []map[string]any{{"id": contact.UUID(), "mrr_cents": 1, "currency": "EUR"}})
				require.NoError(t, err)
				return feedback.CountOnPosts(ctx, tx, []feedback.PostCount{{Post: post, Votes: 1}})
			}))
			_, err = feedback.PostPages.One(ctx, s, postgres.UUID(publicid.NewPost()))
			require.NoError(t, err)
			checked := 0
			for _, q := range asked.All() {
				if !strings.Contains(q.SQL, "unnest") && !strings.Contains(q.SQL, "FROM posts WHERE organization_id") && !updates.MatchString(q.SQL) {
					continue
				}
				checked++
				plan := testkit.KeptPlan(t, c, q)
				// An index of an organization or a board leads to all of its rows.
				if rows == 0 && updates.MatchString(q.SQL) {
					// The update is planned anew once there are statistics. Until then, the organization has few rows.
					require.LessOrEqual(t, strings.Count(plan, "Seq Scan"), 1, "%s\n%s", q.SQL, plan)
					if strings.Contains(q.SQL, "FOR NO KEY UPDATE") { // It finds a contact and locks it before the update.
						require.Equal(t, 2, strings.Count(plan, "Index Scan using contact"), "%s\n%s", q.SQL, plan)
					}
					continue
				}
				require.NotRegexp(t, `(?m)Index Cond: \((organization_id|board_id) = [^)]*\)$|changed_in_id`, plan, "%s\n%s", q.SQL, plan)
				for _, table := range []string{"posts", "votes", "contacts"} {
					require.NotRegexp(t, `Seq Scan on `+table+`\b`, plan, "%s\n%s", q.SQL, plan)
				}
			}
			require.Equal(t, 8, checked)
		})
	}
}

// Entries of deleted posts stay in an index until a vacuum, which waits for the oldest transaction.
func TestALookForTheSlugOfANewPostReadsNoDeletedPosts(t *testing.T) {
	t.Parallel()
	s, c, asked := testkit.Asked(t)
	of, on := publicid.NewOrganization(), publicid.NewBoard()
	_, err := c.Exec(t.Context(), fmt.Sprintf(`
		INSERT INTO organizations (id, created_at, updated_at, name) VALUES ('%[1]s', now(), now(), 'x');
		INSERT INTO boards (id, organization_id, created_at, updated_at, name, slug) VALUES ('%[2]s', '%[1]s', now(), now(), 'x', 'x');
		INSERT INTO posts (id, organization_id, created_at, updated_at, title, slug, last_activity_at, board_id)
			SELECT gen_random_uuid(), '%[1]s', now(), now(), 'x', 'x-' || n, now(), '%[2]s' FROM generate_series(1, 5000) n;
		ANALYZE posts`, of.UUID(), on.UUID()))
	require.NoError(t, err)
	old, err := pgx.Connect(t.Context(), c.Config().ConnString())
	require.NoError(t, err)
	t.Cleanup(func() { _ = old.Close(context.WithoutCancel(t.Context())) })
	_, err = old.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "UPDATE posts SET deleted_at = now()")
	require.NoError(t, err)

	ctx := postgres.WithOrganization(t.Context(), of)
	require.NoError(t, s.InTx(ctx, func(tx *db.Tx) error {
		places, err := feedback.KeepPostPlaces(ctx, tx, []feedback.PostSlug{{Board: on, Slug: "x"}}, nil, false)
		require.NoError(t, err)
		require.Empty(t, places.Taken)
		return nil
	}))
	keep := asked.All()[slices.IndexFunc(asked.All(), func(q pgx.TraceQueryStartData) bool { return strings.Contains(q.SQL, "unnest") })]
	var read []struct {
		Plan struct {
			Hit int `json:"Shared Hit Blocks"`
			New int `json:"Shared Read Blocks"`
		}
	}
	require.NoError(t, c.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+keep.SQL, keep.Args...).Scan(&read))
	// The board and one way through the index are fewer than ten. The deleted posts are 5,000.
	require.Less(t, read[0].Plan.Hit+read[0].Plan.New, 50)
}

// A rule may read any column, also one that is added later.
func TestTheGatesSeeEveryColumnOfABoardAndOfAPost(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	ctx, _ := fixture.NewOrganization(t, s)
	c, at := s.Client(), postgres.Now()
	on, err := c.Board.Create().SetName("Ideas").SetSlug("ideas").SetDescription("All of them").SetPublic(true).SetModerated(true).
		SetShowRoadmap(false).Save(ctx)
	require.NoError(t, err)
	p, err := c.Post.Create().SetBoardID(on.ID).SetTitle("Dark mode").SetSlug("dark-mode").SetHideFromRoadmap(true).
		SetVoteCount(3).SetLastActivityAt(at).Save(ctx)
	require.NoError(t, err)
	on, p = c.Board.GetX(ctx, on.ID), c.Post.GetX(ctx, p.ID)
	p.BodyText, p.BodyJSON = "", nil // the locks leave out the texts
	slug := feedback.PostSlug{Board: on.ID, Slug: p.Slug}
	require.NoError(t, s.InTx(ctx, func(tx *db.Tx) error {
		places, err := feedback.KeepPostPlaces(ctx, tx, []feedback.PostSlug{slug, {Board: on.ID, Slug: "free"}}, nil, false)
		require.NoError(t, err)
		require.Equal(t, on.String(), places.Boards[on.ID].String())
		require.Equal(t, map[feedback.PostSlug]bool{slug: true}, places.Taken)
		locked, err := feedback.LockPlaces(ctx, tx, []publicid.Post{p.ID}, false)
		require.NoError(t, err)
		require.Equal(t, p.String(), locked[p.ID].String())
		return nil
	}))
}
