package main

import "fmt"

// removal takes away an organization of the name in $1, children first. What is
// searched is removed at once and not row by row.
var removal = func() []step {
	var steps []step
	for _, table := range []string{
		"votes", "comments", "post_tags", "changelog_links", "post_documents", "posts", "contact_documents", "contacts",
		"changelog_entries", "tags", "boards", "api_keys", "users",
	} {
		steps = append(steps, step{what: "remove " + table, sql: fmt.Sprintf(
			"DELETE FROM %s WHERE organization_id IN (SELECT id FROM organizations WHERE name = $1)", table)})
	}
	return append(steps, step{what: "remove the organization", sql: "DELETE FROM organizations WHERE name = $1"})
}()

// The distributions are those of a product that lives: few plans, most contacts
// without revenue, votes and words after Zipf. Every choice hangs on the row's
// number alone, so two seeds are equal.
func filling(s size) []step {
	return []step{
		{what: "functions", sql: functions},
		{what: "organization", sql: `INSERT INTO organizations (id, created_at, updated_at, name) VALUES (pg_temp.seed_id(0, 1), now(), now(), $1)`, args: []any{organization}},
		{what: "member", sql: `INSERT INTO users (id, organization_id, created_at, updated_at, email, name) VALUES (pg_temp.seed_id(0, 2), pg_temp.seed_id(0, 1), now(), now(), 'bench@example.com', 'Bench')`},
		{what: "boards", sql: `INSERT INTO boards (id, organization_id, created_at, updated_at, name, slug)
			SELECT pg_temp.seed_id(n, 3), pg_temp.seed_id(0, 1), now(), now(), 'Board ' || n, 'board-' || n FROM generate_series(0, 99) n`},
		{what: "tags", sql: `INSERT INTO tags (id, organization_id, created_at, updated_at, name, name_key, color, board_id)
			SELECT pg_temp.seed_id(n, 4), pg_temp.seed_id(0, 1), now(), now(), 'Tag ' || n, 'tag ' || n, '#6b7280', pg_temp.seed_id(0, 3) FROM generate_series(0, 29) n`},
		// The index is built over what is there: row by row takes ten times as long.
		{what: "drop the search indexes", sql: `DROP INDEX contact_documents_grams; DROP INDEX post_documents_words`},
		{what: "contacts", sql: contacts, args: []any{s.contacts}},
		{what: "posts", sql: posts, args: []any{s.posts, s.contacts}},
		{what: "post tags", sql: `INSERT INTO post_tags (id, organization_id, post_id, tag_id)
			SELECT gen_random_uuid(), pg_temp.seed_id(0, 1), pg_temp.seed_id(n, 5), pg_temp.seed_id((n * 7 % 29)::bigint, 4) FROM generate_series(1, $1::int) n WHERE n % 3 > 0`, args: []any{s.posts}},
		{what: "votes", sql: votes, args: []any{s.votes, s.posts}},
		{what: "comments", sql: comments, args: []any{s.posts}},
		{what: "changelog", sql: `INSERT INTO changelog_entries (id, organization_id, created_at, updated_at, title, slug, board_id)
			SELECT pg_temp.seed_id(n, 8), pg_temp.seed_id(0, 1), now(), now(), 'Release ' || n, 'release-' || n, pg_temp.seed_id(0, 3) FROM generate_series(1, 30000) n`},
		{what: "count", sql: `UPDATE posts p SET vote_count = coalesce(v.n, 0), comment_count = coalesce(k.n, 0) FROM posts q
			LEFT JOIN (SELECT post_id, count(*) n FROM votes WHERE organization_id = pg_temp.seed_id(0, 1) GROUP BY 1) v ON v.post_id = q.id
			LEFT JOIN (SELECT post_id, count(*) n FROM comments WHERE organization_id = pg_temp.seed_id(0, 1) GROUP BY 1) k ON k.post_id = q.id
			WHERE p.id = q.id AND p.organization_id = pg_temp.seed_id(0, 1)`},
		{what: "index the words", sql: `CREATE INDEX post_documents_words ON post_documents USING gin (words) WITH (fastupdate = off)`},
		{what: "index the substrings", sql: `CREATE INDEX contact_documents_grams ON contact_documents USING gin (grams) WITH (fastupdate = off)`},
		{what: "vacuum", sql: `VACUUM (ANALYZE) contacts, contact_documents, posts, post_documents, post_tags, votes, comments, changelog_entries`},
	}
}

// Ids go with time, as ours do: row n of a kind was made n minutes into 2020.
const functions = `
CREATE OR REPLACE FUNCTION pg_temp.seed_id(n bigint, kind int) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
  SELECT (lpad(to_hex(1577836800000 + n * 60000), 12, '0') || '7' || substr(md5(n || 'a' || kind), 1, 3)
    || '8' || substr(md5(n || 'b' || kind), 1, 15))::uuid
$$;
CREATE OR REPLACE FUNCTION pg_temp.seed_word(n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT (ARRAY['export','dashboard','mobile','filter','report','chart','login','search','email','billing','invoice','team',
    'calendar','keyboard','shortcut','theme','dark','import','csv','webhook','slack','alert','permission','role','audit',
    'language','timezone','currency','print','share','comment','vote','roadmap','status','archive','merge','tag','board',
    'sync','offline','cache','latency','upload','avatar','profile','password','token','session','limit','quota'])[1 + n % 50]
$$;`

// A word in every hundredth name and plan is rare.
const contacts = `
INSERT INTO contacts (id, organization_id, created_at, updated_at, external_user_id, email, name, plan, mrr_cents, currency,
  metadata, source, consent_basis, first_seen_at, last_seen_at)
SELECT pg_temp.seed_id(n, 6), pg_temp.seed_id(0, 1), t, t + (n * 7919 % 500000) * interval '1 minute', 'user-' || n,
  first || '.' || last || n || '@company' || n % 5000 || '.example.com', initcap(first || ' ' || last),
  CASE WHEN n % 100000 = 0 THEN 'enterprise' WHEN n % 10 < 7 THEN 'free' WHEN n % 10 < 9 THEN 'team' END,
  CASE WHEN n % 10 >= 7 THEN n * 31 % 90000 END, CASE WHEN n % 10 >= 7 THEN 'EUR' END,
  '{"role":"analyst","seats":12}', CASE WHEN n % 11 = 0 THEN 'admin' ELSE 'identify' END,
  CASE WHEN n % 11 = 0 THEN 'admin_created' ELSE 'sdk_identify' END, t, t + (n * 104729 % 500000) * interval '1 minute'
FROM (
  SELECT n, timestamptz '2020-01-01' + n * interval '1 minute' AS t,
    (ARRAY['ada','bo','ines','dana','kim','noor','lars','mei','omar','petra','quinn','rosa'])[1 + n % 12] AS first,
    (ARRAY['marques','reyes','okafor','lindgren','tanaka','novak','haddad','silva','moreau','fischer','costa'])[1 + n / 12 % 11]
      || CASE WHEN n % 10007 = 0 THEN 'zyx' ELSE '' END AS last
  FROM generate_series(1::bigint, $1::bigint) n
) named`

const posts = `
INSERT INTO posts (id, organization_id, created_at, updated_at, title, slug, status, body_text, last_activity_at, board_id,
  contact_id, author_user_id)
SELECT pg_temp.seed_id(n, 5), pg_temp.seed_id(0, 1), t, t,
  initcap(pg_temp.seed_word(n * n)) || ' ' || pg_temp.seed_word(n / 50) || ' ' || pg_temp.seed_word(n * 13 / 7) || CASE WHEN n % 5003 = 0 THEN ' xylophone' ELSE '' END,
  'post-' || n,
  CASE WHEN n % 50000 = 0 THEN 'declined' WHEN n % 100 < 80 THEN 'open' WHEN n % 100 < 95 THEN 'planned' ELSE 'shipped' END,
  (SELECT string_agg(pg_temp.seed_word(n * i * i + i), ' ') FROM generate_series(1, 30) i) || CASE WHEN n % 4999 = 0 THEN ' xylophone' ELSE '' END,
  t + (n * 104729 % 500000) * interval '1 minute', pg_temp.seed_id(0, 3),
  CASE WHEN n % 3 = 0 THEN pg_temp.seed_id(CASE WHEN n % 6 = 0 THEN 1 ELSE 1 + n * 31 % $2::bigint END, 6) END, pg_temp.seed_id(0, 2)
FROM (SELECT n, timestamptz '2020-01-01' + n * interval '1 minute' AS t FROM generate_series(1::bigint, $1::bigint) n) numbered`

// A fortieth of all votes is on the first post.
const votes = `
INSERT INTO votes (id, organization_id, created_at, email_hash, post_id)
SELECT pg_temp.seed_id(n, 7), pg_temp.seed_id(0, 1), timestamptz '2020-01-01' + n * interval '1 minute', decode(md5(n::text) || md5(n || 'x'), 'hex'),
  pg_temp.seed_id(CASE WHEN n % 40 = 0 THEN 1 ELSE 1 + floor($2::bigint * power(n * 7919 % 1000003 / 1000003.0, 3))::bigint END, 5)
FROM generate_series(1::bigint, $1::bigint) n`

// Threads of four, a third of them on the first post.
const comments = `
INSERT INTO comments (id, organization_id, created_at, updated_at, parent_id, body_text, post_id, author_user_id)
SELECT pg_temp.seed_id(n, 9), pg_temp.seed_id(0, 1), t, t, CASE WHEN n % 4 > 0 THEN pg_temp.seed_id(n - n % 4, 9) END, 'Me too, and in landscape.',
  pg_temp.seed_id(CASE WHEN n / 4 % 3 = 0 THEN 1 ELSE 1 + n / 4 % $1::bigint END, 5), pg_temp.seed_id(0, 2)
FROM (SELECT n, timestamptz '2020-01-01' + n * interval '1 minute' AS t FROM generate_series(4::bigint, 200003) n) numbered`
