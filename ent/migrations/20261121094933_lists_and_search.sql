-- +goose Up
-- modify "api_keys" table
ALTER TABLE "api_keys" ADD COLUMN "superseded_at" timestamptz NULL;
-- drop index "comment_post_id_id" from table: "comments"
DROP INDEX "comment_post_id_id";
-- create index "changelogentry_published_at" to table: "changelog_entries"
CREATE INDEX "changelogentry_published_at" ON "changelog_entries" ("published_at") WHERE ((state)::text = 'scheduled'::text);
-- create index "contact_organization_id_consent_basis_id" to table: "contacts"
CREATE INDEX "contact_organization_id_consent_basis_id" ON "contacts" ("organization_id", "consent_basis", "id");
-- create index "contact_organization_id_email" to table: "contacts"
CREATE INDEX "contact_organization_id_email" ON "contacts" ("organization_id", "email");
-- create index "contact_organization_id_last_seen_at_id" to table: "contacts"
CREATE INDEX "contact_organization_id_last_seen_at_id" ON "contacts" ("organization_id", "last_seen_at", "id");
-- create index "contact_organization_id_plan_id" to table: "contacts"
CREATE INDEX "contact_organization_id_plan_id" ON "contacts" ("organization_id", "plan", "id");
-- create index "contact_organization_id_source_id" to table: "contacts"
CREATE INDEX "contact_organization_id_source_id" ON "contacts" ("organization_id", "source", "id");
-- create index "contact_organization_id_updated_at" to table: "contacts"
CREATE INDEX "contact_organization_id_updated_at" ON "contacts" ("organization_id", "updated_at");
-- create index "delivery_webhook_id_event_type_id" to table: "deliveries"
CREATE INDEX "delivery_webhook_id_event_type_id" ON "deliveries" ("webhook_id", "event_type", "id");
-- create index "delivery_webhook_id_status_id" to table: "deliveries"
CREATE INDEX "delivery_webhook_id_status_id" ON "deliveries" ("webhook_id", "status", "id");
-- drop index "post_contact_id_id" from table: "posts"
DROP INDEX "post_contact_id_id";
-- create index "post_contact_id_id" to table: "posts"
CREATE INDEX "post_contact_id_id" ON "posts" ("contact_id", "id");
-- create index "post_board_id_last_activity_at_id" to table: "posts"
CREATE INDEX "post_board_id_last_activity_at_id" ON "posts" ("board_id", "last_activity_at", "id") WHERE (deleted_at IS NULL);
-- create index "post_board_id_status_id" to table: "posts"
CREATE INDEX "post_board_id_status_id" ON "posts" ("board_id", "status", "id") WHERE (deleted_at IS NULL);
-- create index "post_board_id_vote_count_id" to table: "posts"
CREATE INDEX "post_board_id_vote_count_id" ON "posts" ("board_id", "vote_count", "id") WHERE (deleted_at IS NULL);
-- create index "post_organization_id_contact_id_id" to table: "posts"
CREATE INDEX "post_organization_id_contact_id_id" ON "posts" ("organization_id", "contact_id", "id") WHERE (deleted_at IS NULL);
-- create index "post_merged_into_id" to table: "posts"
CREATE INDEX "post_merged_into_id" ON "posts" ("merged_into_id") WHERE (merged_into_id IS NOT NULL);

-- By hand from here on: what Ent can't declare, see byHand in internal/store/migrate.go.
-- Replies stand behind the comment that they answer.
CREATE INDEX "comments_by_thread" ON "comments" ("post_id", coalesce("parent_id", "id"), ("parent_id" IS NOT NULL), "id");
-- Contacts without revenue come last, and -1 is less than any.
CREATE INDEX "contacts_by_mrr" ON "contacts" ("organization_id", coalesce("mrr_cents", -1), "id");

-- What is searched stands in tables of its own: a vote or a visit rewrites the row
-- that it counts on, and would write all entries of a search index anew. The
-- triggers are the only ones that write here. Without the pending list no single
-- insert pays for those before it.
CREATE TABLE "post_documents" (
  "post_id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "title" tsvector NOT NULL,
  "words" tsvector NOT NULL,
  PRIMARY KEY ("post_id"),
  CONSTRAINT "post_documents_posts_post" FOREIGN KEY ("organization_id", "post_id") REFERENCES "posts" ("organization_id", "id") ON DELETE CASCADE
);
-- The text parser takes time with the square of what it holds for one word, an
-- address or a tag, so there is no long one and no tag.
-- +goose StatementBegin
CREATE FUNCTION "searchable"(written text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT regexp_replace(translate(written, '<', ' '), '\S{100}', '\& ', 'g')
$$;
-- +goose StatementEnd
-- Title and text with a word for the board, which no text has because of its blank.
-- +goose StatementBegin
CREATE FUNCTION "document_words"(written text, board uuid) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT to_tsvector('english', searchable(written)) || array_to_tsvector(ARRAY['board ' || board])
$$;
-- +goose StatementEnd
INSERT INTO "post_documents" ("post_id", "organization_id", "title", "words")
SELECT "id", "organization_id", document_words("title", "board_id"), document_words("title" || ' ' || "body_text", "board_id")
FROM "posts" WHERE "deleted_at" IS NULL;
CREATE INDEX "post_documents_title" ON "post_documents" USING gin ("title") WITH (fastupdate = off);
CREATE INDEX "post_documents_words" ON "post_documents" USING gin ("words") WITH (fastupdate = off);
-- +goose StatementBegin
CREATE FUNCTION "keep_post_document"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.deleted_at IS NOT NULL THEN
    DELETE FROM post_documents WHERE post_id = NEW.id;
  ELSE
    INSERT INTO post_documents (post_id, organization_id, title, words)
    VALUES (NEW.id, NEW.organization_id, document_words(NEW.title, NEW.board_id),
      document_words(NEW.title || ' ' || NEW.body_text, NEW.board_id))
    ON CONFLICT (post_id) DO UPDATE SET title = excluded.title, words = excluded.words;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER "keep_post_document" AFTER INSERT OR UPDATE OF "title", "body_text", "deleted_at" ON "posts"
  FOR EACH ROW EXECUTE FUNCTION "keep_post_document"();

-- A substring of one, two or three characters is found by its number, a longer
-- one by those of all its threes; who has them all is then looked at. The numbers
-- are an organization's own, so that a search reads nothing of another's. They are
-- those of hash partitions, which stay the same from one Postgres to the next.
-- +goose StatementBegin
CREATE FUNCTION "gram_number"(gram text, organization uuid) RETURNS int LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (hashtextextended(gram, uuid_hash_extended(organization, 0)) & 2147483647)::int
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION "document_grams"(document text, organization uuid) RETURNS int[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT array(SELECT gram_number(substr(document, i, n), organization)
    FROM generate_series(1, 3) n, generate_series(1, length(document) - n + 1) i)
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION "search_grams"(wanted text, organization uuid) RETURNS int[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT array(SELECT DISTINCT gram_number(substr(wanted, i, 3), organization)
    FROM generate_series(1, greatest(length(wanted) - 2, 1)) i)
$$;
-- +goose StatementEnd

CREATE TABLE "contact_documents" (
  "contact_id" uuid NOT NULL,
  "organization_id" uuid NOT NULL,
  "grams" int[] NOT NULL,
  PRIMARY KEY ("contact_id"),
  CONSTRAINT "contact_documents_contacts_contact" FOREIGN KEY ("organization_id", "contact_id") REFERENCES "contacts" ("organization_id", "id") ON DELETE CASCADE
);
INSERT INTO "contact_documents" ("contact_id", "organization_id", "grams")
SELECT "id", "organization_id", document_grams(lower(coalesce("email", '')), "organization_id") || document_grams(lower(coalesce("name", '')), "organization_id")
FROM "contacts";
CREATE INDEX "contact_documents_grams" ON "contact_documents" USING gin ("grams") WITH (fastupdate = off);

-- +goose StatementBegin
CREATE FUNCTION "keep_contact_document"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO contact_documents (contact_id, organization_id, grams)
  VALUES (NEW.id, NEW.organization_id, document_grams(lower(coalesce(NEW.email, '')), NEW.organization_id)
    || document_grams(lower(coalesce(NEW.name, '')), NEW.organization_id))
  ON CONFLICT (contact_id) DO UPDATE SET grams = excluded.grams;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER "keep_contact_document" AFTER INSERT OR UPDATE OF "email", "name" ON "contacts"
  FOR EACH ROW EXECUTE FUNCTION "keep_contact_document"();

-- +goose Down
DROP TRIGGER "keep_contact_document" ON "contacts";
DROP FUNCTION "keep_contact_document";
DROP TABLE "contact_documents";
DROP FUNCTION "search_grams";
DROP FUNCTION "document_grams";
DROP FUNCTION "gram_number";
DROP TRIGGER "keep_post_document" ON "posts";
DROP FUNCTION "keep_post_document";
DROP FUNCTION "document_words";
DROP FUNCTION "searchable";
DROP TABLE "post_documents";
DROP INDEX "contacts_by_mrr";
DROP INDEX "comments_by_thread";
-- reverse: create index "post_organization_id_contact_id_id" to table: "posts"
DROP INDEX "post_organization_id_contact_id_id";
-- reverse: create index "post_merged_into_id" to table: "posts"
DROP INDEX "post_merged_into_id";
-- reverse: create index "post_board_id_vote_count_id" to table: "posts"
DROP INDEX "post_board_id_vote_count_id";
-- reverse: create index "post_board_id_status_id" to table: "posts"
DROP INDEX "post_board_id_status_id";
-- reverse: create index "post_board_id_last_activity_at_id" to table: "posts"
DROP INDEX "post_board_id_last_activity_at_id";
-- reverse: create index "post_contact_id_id" to table: "posts"
DROP INDEX "post_contact_id_id";
-- reverse: drop index "post_contact_id_id" from table: "posts"
CREATE INDEX "post_contact_id_id" ON "posts" ("contact_id", "id") WHERE (deleted_at IS NULL);
-- reverse: create index "delivery_webhook_id_status_id" to table: "deliveries"
DROP INDEX "delivery_webhook_id_status_id";
-- reverse: create index "delivery_webhook_id_event_type_id" to table: "deliveries"
DROP INDEX "delivery_webhook_id_event_type_id";
-- reverse: create index "contact_organization_id_updated_at" to table: "contacts"
DROP INDEX "contact_organization_id_updated_at";
-- reverse: create index "contact_organization_id_source_id" to table: "contacts"
DROP INDEX "contact_organization_id_source_id";
-- reverse: create index "contact_organization_id_plan_id" to table: "contacts"
DROP INDEX "contact_organization_id_plan_id";
-- reverse: create index "contact_organization_id_last_seen_at_id" to table: "contacts"
DROP INDEX "contact_organization_id_last_seen_at_id";
-- reverse: create index "contact_organization_id_email" to table: "contacts"
DROP INDEX "contact_organization_id_email";
-- reverse: create index "contact_organization_id_consent_basis_id" to table: "contacts"
DROP INDEX "contact_organization_id_consent_basis_id";
-- reverse: create index "changelogentry_published_at" to table: "changelog_entries"
DROP INDEX "changelogentry_published_at";
-- reverse: drop index "comment_post_id_id" from table: "comments"
CREATE INDEX "comment_post_id_id" ON "comments" ("post_id", "id");
-- reverse: modify "api_keys" table
-- By hand: a key that was rotated must not come to life again.
UPDATE "api_keys" SET "expires_at" = least("expires_at", "superseded_at") WHERE "superseded_at" IS NOT NULL;
ALTER TABLE "api_keys" DROP COLUMN "superseded_at";
