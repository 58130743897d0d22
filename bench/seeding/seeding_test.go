package seeding_test

import (
	"bytes"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/bench/seeding"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// Large enough to contain each of the rare words and names.
var small = seeding.Size{Contacts: 10_100, Posts: 5_100, Votes: 300}

// facts must be true of the seeded rows. The last one checks the numbers of rows.
var facts = map[string]string{
	"the counters are the rows": `SELECT bool_and(vote_count = (SELECT count(*) FROM votes v WHERE v.post_id = p.id)
		AND comment_count = (SELECT count(*) FROM comments c WHERE c.post_id = p.id)) FROM posts p`,
	"one post has the votes asked for": `SELECT max(vote_count) = 300 AND sum(vote_count) = 360 FROM posts`,
	"every post belongs to a board and a member": `SELECT bool_and(EXISTS (SELECT FROM boards b WHERE b.id = p.board_id AND b.organization_id = p.organization_id)
		AND EXISTS (SELECT FROM users u WHERE u.id = p.author_user_id)) FROM posts p`,
	"a post's contact is there": `SELECT bool_and(EXISTS (SELECT FROM contacts c WHERE c.id = p.contact_id AND c.organization_id = p.organization_id))
		FROM posts p WHERE contact_id IS NOT NULL`,
	"votes, comments and tags are of posts that are there": `SELECT bool_and(EXISTS (SELECT FROM posts p WHERE p.id = r.post_id)) FROM (
		SELECT post_id FROM votes UNION ALL SELECT post_id FROM comments UNION ALL SELECT post_id FROM post_tags) r`,
	"a reply's comment is on the same post": `SELECT bool_and(EXISTS (SELECT FROM comments p WHERE p.id = c.parent_id AND p.post_id = c.post_id))
		FROM comments c WHERE parent_id IS NOT NULL`,
	"everything is there": `SELECT (SELECT count(*) FROM contacts) = 10100 AND (SELECT count(*) FROM posts) = 5100
		AND (SELECT count(*) FROM comments) = 5100 AND (SELECT count(*) FROM contact_documents) = 10100`,
}

const indexes = `SELECT coalesce(string_agg(indexdef, E'\n' ORDER BY indexdef), '') FROM pg_indexes WHERE schemaname = 'public'`

// The search documents as text, in a fixed order.
const documents = `SELECT string_agg(d, E'\n' ORDER BY d) FROM (
	SELECT post_id || ' ' || title::text || ' ' || words::text AS d FROM post_documents
	UNION ALL SELECT contact_id || ' ' || grams::text FROM contact_documents) d`

func TestSeededRowsMatchTheRowsOfTheService(t *testing.T) {
	tier.Slow(t, "fills a database and runs the service beside it")
	t.Parallel()
	url := testkit.Database(t)
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	read := func(sql string) (value string) {
		t.Helper()
		require.NoError(t, c.QueryRow(t.Context(), "SELECT ("+sql+")::text").Scan(&value), sql)
		return value
	}
	before := read(indexes)
	var progress bytes.Buffer
	// The second Fill removes the rows of the first one.
	for range 2 {
		require.NoError(t, seeding.Fill(t.Context(), url, small, &progress))
	}
	require.Contains(t, progress.String(), "remove posts")
	for fact, sql := range facts {
		require.Equal(t, "true", read(sql), fact)
	}
	require.Equal(t, before, read(indexes), "the indexes are those of the migrations")

	seeded := read(documents)
	_, err = c.Exec(t.Context(), "TRUNCATE post_documents, contact_documents; UPDATE posts SET title = title; UPDATE contacts SET name = name")
	require.NoError(t, err)
	require.Equal(t, read(documents), seeded, "the search documents are those of the triggers")

	require.NoError(t, seeding.Remove(t.Context(), url, &progress))
	require.Equal(t, "true", read(`SELECT NOT EXISTS (SELECT FROM posts) AND NOT EXISTS (SELECT FROM contact_documents) AND NOT EXISTS (SELECT FROM organizations)`))
}
