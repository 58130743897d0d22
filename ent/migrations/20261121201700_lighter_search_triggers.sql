-- +goose Up
-- By hand: the same documents as before, written in a third of the time. Postgres plans
-- what stands in a function of SQL anew at each call, unless it can put it in the call's
-- place, and what stands in the trigger itself once in a session.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "keep_contact_document"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  email text := lower(coalesce(NEW.email, ''));
  name text := lower(coalesce(NEW.name, ''));
BEGIN
  IF email || name = '' THEN
    -- Nothing that a search could find.
    IF TG_OP = 'UPDATE' THEN
      DELETE FROM contact_documents WHERE contact_id = NEW.id;
    END IF;
  ELSE
    INSERT INTO contact_documents (contact_id, organization_id, grams)
    VALUES (NEW.id, NEW.organization_id, ARRAY(SELECT gram_number(substr(document, i, n), NEW.organization_id)
      FROM unnest(ARRAY[email, name]) document, generate_series(1, 3) n, generate_series(1, length(document) - n + 1) i))
    ON CONFLICT (contact_id) DO UPDATE SET grams = excluded.grams;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "keep_post_document"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  board tsvector;
BEGIN
  IF NEW.deleted_at IS NOT NULL THEN
    DELETE FROM post_documents WHERE post_id = NEW.id;
  ELSE
    board := array_to_tsvector(ARRAY['board ' || NEW.board_id]);
    INSERT INTO post_documents (post_id, organization_id, title, words)
    VALUES (NEW.id, NEW.organization_id, to_tsvector('english', searchable(NEW.title)) || board,
      to_tsvector('english', searchable(NEW.title || ' ' || NEW.body_text)) || board)
    ON CONFLICT (post_id) DO UPDATE SET title = excluded.title, words = excluded.words;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
DROP FUNCTION "document_words";
DROP FUNCTION "document_grams";
DELETE FROM "contact_documents" WHERE "grams" = '{}';

-- +goose Down
-- +goose StatementBegin
CREATE FUNCTION "document_words"(written text, board uuid) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT to_tsvector('english', searchable(written)) || array_to_tsvector(ARRAY['board ' || board])
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION "document_grams"(document text, organization uuid) RETURNS int[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT array(SELECT gram_number(substr(document, i, n), organization)
    FROM generate_series(1, 3) n, generate_series(1, length(document) - n + 1) i)
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "keep_post_document"() RETURNS trigger LANGUAGE plpgsql AS $$
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
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "keep_contact_document"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO contact_documents (contact_id, organization_id, grams)
  VALUES (NEW.id, NEW.organization_id, document_grams(lower(coalesce(NEW.email, '')), NEW.organization_id)
    || document_grams(lower(coalesce(NEW.name, '')), NEW.organization_id))
  ON CONFLICT (contact_id) DO UPDATE SET grams = excluded.grams;
  RETURN NULL;
END $$;
-- +goose StatementEnd
