-- +goose NO TRANSACTION
-- +goose Up
-- create index "changelogentry_board_id_published_at_id" to table: "changelog_entries"
CREATE INDEX CONCURRENTLY IF NOT EXISTS "changelogentry_board_id_published_at_id" ON "changelog_entries" ("board_id", "published_at", "id") WHERE ((state)::text = 'published'::text);
-- create index "organizations_slug_key" to table: "organizations"
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "organizations_slug_key" ON "organizations" ("slug");

-- +goose Down
-- reverse: create index "organizations_slug_key" to table: "organizations"
DROP INDEX CONCURRENTLY IF EXISTS "organizations_slug_key";
-- reverse: create index "changelogentry_board_id_published_at_id" to table: "changelog_entries"
DROP INDEX CONCURRENTLY IF EXISTS "changelogentry_board_id_published_at_id";
