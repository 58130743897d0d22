-- +goose Up
-- How a contact came in, and on what basis it may be used, never changes (specification,
-- Contacts). No program has ever written these columns again; here nobody can, by hand neither.
-- +goose StatementBegin
CREATE FUNCTION "keep_provenance"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'source and consent_basis of a contact are immutable' USING ERRCODE = 'integrity_constraint_violation';
END
$$;
-- +goose StatementEnd
CREATE TRIGGER "contact_keeps_provenance" BEFORE UPDATE OF "source", "consent_basis" ON "contacts" FOR EACH ROW
  WHEN (OLD.source IS DISTINCT FROM NEW.source OR OLD.consent_basis IS DISTINCT FROM NEW.consent_basis)
  EXECUTE FUNCTION "keep_provenance"();

-- +goose Down
DROP TRIGGER "contact_keeps_provenance" ON "contacts";
DROP FUNCTION "keep_provenance"();
