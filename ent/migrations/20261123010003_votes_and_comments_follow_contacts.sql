-- +goose Up
-- Behind the indexes of the columns: without those, each deletion of a contact would read all
-- votes and comments.
-- modify "votes" table
ALTER TABLE "votes" ADD CONSTRAINT "votes_contacts_contact" FOREIGN KEY ("organization_id", "contact_id") REFERENCES "contacts" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION NOT VALID;
-- modify "comments" table
ALTER TABLE "comments" ADD CONSTRAINT "comments_contacts_contact" FOREIGN KEY ("organization_id", "contact_id") REFERENCES "contacts" ("organization_id", "id") ON UPDATE NO ACTION ON DELETE NO ACTION NOT VALID;
-- Votes and comments outlive the contact, as posts do. Here and not in the program: the one of
-- the release before deletes contacts, too.
-- +goose StatementBegin
CREATE FUNCTION "leave_votes_and_comments"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE votes SET contact_id = NULL WHERE organization_id = OLD.organization_id AND contact_id = OLD.id;
  UPDATE comments SET contact_id = NULL WHERE organization_id = OLD.organization_id AND contact_id = OLD.id;
  RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER "contact_leaves" BEFORE DELETE ON "contacts" FOR EACH ROW EXECUTE FUNCTION "leave_votes_and_comments"();
-- The hash of the address is how a person is known who is a member and a contact, or two
-- contacts. So that of what a contact did is that of its present address, whenever it was told.
-- Where another vote on the post, or another guest, has it already, this one gets none: one row
-- is enough to find the person by. A comment that gets none is given one of no address by the
-- program, as a new one is.
-- +goose StatementBegin
CREATE FUNCTION "follow_contact"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE votes v SET email_hash = CASE WHEN NOT EXISTS (
      SELECT FROM votes o WHERE o.organization_id = NEW.organization_id AND o.post_id = v.post_id
        AND o.email_hash = NEW.email_hash AND o.user_id IS NULL AND o.id <> v.id
    ) THEN NEW.email_hash END
    WHERE v.organization_id = NEW.organization_id AND v.contact_id = NEW.id;
  UPDATE users u SET email_hash = CASE WHEN NOT EXISTS (
      SELECT FROM users o WHERE o.organization_id = NEW.organization_id AND o.email_hash = NEW.email_hash AND o.id <> u.id
    ) THEN NEW.email_hash END
    WHERE u.organization_id = NEW.organization_id AND u.contact_id = NEW.id;
  UPDATE comments SET email_hash = NEW.email_hash WHERE organization_id = NEW.organization_id AND contact_id = NEW.id;
  RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER "contact_is_followed" AFTER UPDATE OF "email_hash" ON "contacts" FOR EACH ROW
  WHEN (OLD.email_hash IS DISTINCT FROM NEW.email_hash) EXECUTE FUNCTION "follow_contact"();

-- +goose Down
DROP TRIGGER "contact_is_followed" ON "contacts";
DROP FUNCTION "follow_contact"();
DROP TRIGGER "contact_leaves" ON "contacts";
DROP FUNCTION "leave_votes_and_comments"();
-- reverse: modify "comments" table
ALTER TABLE "comments" DROP CONSTRAINT "comments_contacts_contact";
-- reverse: modify "votes" table
ALTER TABLE "votes" DROP CONSTRAINT "votes_contacts_contact";
