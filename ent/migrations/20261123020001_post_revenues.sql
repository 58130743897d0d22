-- +goose Up
-- What the contacts who vote for a post pay together, by currency. By hand, because only the
-- database writes it, whatever program changes a vote or a contact: the one of the release before
-- merges posts and updates contacts, too.
--
-- A vote has a copy of what its contact pays, so that it can be counted off again without a look at
-- the contact. Who changes what a contact pays waits for the votes of it that are being put, and
-- passes it on to all that are there then.
-- modify "votes" table
ALTER TABLE "votes" ADD COLUMN "mrr_cents" bigint NULL, ADD COLUMN "currency" character varying NULL;
CREATE TABLE "post_revenues" (
  "organization_id" uuid NOT NULL,
  "board_id" uuid NOT NULL,
  "post_id" uuid NOT NULL,
  "currency" character varying NOT NULL,
  "mrr_cents" bigint NOT NULL,
  PRIMARY KEY ("post_id", "currency"),
  CONSTRAINT "post_revenues_boards_board" FOREIGN KEY ("organization_id", "board_id") REFERENCES "boards" ("organization_id", "id"),
  CONSTRAINT "post_revenues_posts_post" FOREIGN KEY ("organization_id", "post_id") REFERENCES "posts" ("organization_id", "id") ON DELETE CASCADE
);
-- The list of a board by revenue.
CREATE INDEX "post_revenues_board_id_currency_mrr_cents_post_id" ON "post_revenues" ("board_id", "currency", "mrr_cents", "post_id")
  WHERE "mrr_cents" > 0;
-- +goose StatementBegin
CREATE FUNCTION "copy_revenue"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT mrr_cents, currency INTO NEW.mrr_cents, NEW.currency
  FROM contacts WHERE organization_id = NEW.organization_id AND id = NEW.contact_id FOR SHARE;
  RETURN NEW;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION "count_revenue"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO post_revenues AS r (organization_id, board_id, post_id, currency, mrr_cents)
  SELECT organization_id, board_id, id, NEW.currency, NEW.mrr_cents
  FROM posts WHERE organization_id = NEW.organization_id AND id = NEW.post_id
  ON CONFLICT (post_id, currency) DO UPDATE SET mrr_cents = r.mrr_cents + excluded.mrr_cents;
  RETURN NULL;
END
$$;
-- +goose StatementEnd
-- For all rows of a statement at once: a merge moves thousands of votes, and to count each by itself
-- would take the square of that. In the order of the posts, so that nobody waits in a circle.
-- +goose StatementBegin
CREATE FUNCTION "count_revenues_off"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO post_revenues AS r (organization_id, board_id, post_id, currency, mrr_cents)
  SELECT p.organization_id, p.board_id, p.id, b.currency, -sum(b.mrr_cents)::bigint
  FROM before b JOIN posts p ON p.organization_id = b.organization_id AND p.id = b.post_id
  WHERE b.mrr_cents > 0 GROUP BY p.id, b.currency ORDER BY p.id, b.currency
  ON CONFLICT (post_id, currency) DO UPDATE SET mrr_cents = r.mrr_cents + excluded.mrr_cents;
  RETURN NULL;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION "move_revenues"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO post_revenues AS r (organization_id, board_id, post_id, currency, mrr_cents)
  SELECT p.organization_id, p.board_id, p.id, m.currency, sum(m.mrr_cents)::bigint
  FROM (SELECT organization_id, post_id, currency, -mrr_cents AS mrr_cents FROM before WHERE mrr_cents > 0
    UNION ALL SELECT organization_id, post_id, currency, mrr_cents FROM after WHERE mrr_cents > 0) m
  JOIN posts p ON p.organization_id = m.organization_id AND p.id = m.post_id
  GROUP BY p.id, m.currency HAVING sum(m.mrr_cents) <> 0 ORDER BY p.id, m.currency
  ON CONFLICT (post_id, currency) DO UPDATE SET mrr_cents = r.mrr_cents + excluded.mrr_cents;
  RETURN NULL;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION "pass_revenue_on"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Most have no vote, and to look takes less than to update none.
  IF EXISTS (SELECT FROM votes WHERE organization_id = NEW.organization_id AND contact_id = NEW.id) THEN
    UPDATE votes SET mrr_cents = NEW.mrr_cents, currency = NEW.currency
    WHERE organization_id = NEW.organization_id AND contact_id = NEW.id;
  END IF;
  RETURN NULL;
END
$$;
-- +goose StatementEnd
-- As before, and the vote pays nothing any more.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "leave_votes_and_comments"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE votes SET contact_id = NULL, mrr_cents = NULL, currency = NULL
  WHERE organization_id = OLD.organization_id AND contact_id = OLD.id;
  UPDATE comments SET contact_id = NULL WHERE organization_id = OLD.organization_id AND contact_id = OLD.id;
  RETURN OLD;
END
$$;
-- +goose StatementEnd
-- A member's vote fires none of the first two.
CREATE TRIGGER "vote_copies_revenue" BEFORE INSERT ON "votes" FOR EACH ROW
  WHEN (NEW.contact_id IS NOT NULL) EXECUTE FUNCTION "copy_revenue"();
CREATE TRIGGER "vote_counts_revenue" AFTER INSERT ON "votes" FOR EACH ROW
  WHEN (NEW.mrr_cents > 0) EXECUTE FUNCTION "count_revenue"();
CREATE TRIGGER "votes_count_revenues_off" AFTER DELETE ON "votes" REFERENCING OLD TABLE AS "before"
  FOR EACH STATEMENT EXECUTE FUNCTION "count_revenues_off"();
CREATE TRIGGER "votes_move_revenues" AFTER UPDATE ON "votes" REFERENCING OLD TABLE AS "before" NEW TABLE AS "after"
  FOR EACH STATEMENT EXECUTE FUNCTION "move_revenues"();
-- Not for an identify that tells nothing new.
CREATE TRIGGER "contact_passes_revenue_on" AFTER UPDATE OF "mrr_cents", "currency" ON "contacts" FOR EACH ROW
  WHEN (OLD.mrr_cents IS DISTINCT FROM NEW.mrr_cents OR OLD.currency IS DISTINCT FROM NEW.currency)
  EXECUTE FUNCTION "pass_revenue_on"();

-- +goose Down
DROP TRIGGER "contact_passes_revenue_on" ON "contacts";
DROP TRIGGER "votes_move_revenues" ON "votes";
DROP TRIGGER "votes_count_revenues_off" ON "votes";
DROP TRIGGER "vote_counts_revenue" ON "votes";
DROP TRIGGER "vote_copies_revenue" ON "votes";
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "leave_votes_and_comments"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE votes SET contact_id = NULL WHERE organization_id = OLD.organization_id AND contact_id = OLD.id;
  UPDATE comments SET contact_id = NULL WHERE organization_id = OLD.organization_id AND contact_id = OLD.id;
  RETURN OLD;
END
$$;
-- +goose StatementEnd
DROP FUNCTION "pass_revenue_on"();
DROP FUNCTION "move_revenues"();
DROP FUNCTION "count_revenues_off"();
DROP FUNCTION "count_revenue"();
DROP FUNCTION "copy_revenue"();
DROP TABLE "post_revenues";
-- reverse: modify "votes" table
ALTER TABLE "votes" DROP COLUMN "currency", DROP COLUMN "mrr_cents";
