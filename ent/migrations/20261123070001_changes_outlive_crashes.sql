-- +goose Up
-- By hand, because only the database runs these.
--
-- As before, and where the clock stands behind them, too. A standby that took over may not know of the
-- last numbers that were given; a thousand million are more than it can be behind.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "number_changes_anew"("if_in_another_cluster" boolean DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  here bigint := (SELECT system_identifier FROM pg_control_system());
  before transaction_numbers;
  begin_at bigint;
  oldest bigint;
BEGIN
  IF if_in_another_cluster AND EXISTS (SELECT FROM transaction_numbers WHERE cluster = here) THEN
    RETURN;
  END IF;
  -- Until nobody is writing with numbers from before.
  LOCK TABLE posts, comments, contacts, changelog_entries IN SHARE MODE;
  SELECT * INTO before FROM transaction_numbers WHERE NOT if_in_another_cluster OR cluster <> here FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  SELECT pg_snapshot_xmin(now)::text::bigint, greatest(extract(epoch FROM clock_timestamp())::bigint * 1000000000,
    greatest(before.base + pg_snapshot_xmax(now)::text::bigint, before.restored) + 1000000000)
  INTO oldest, begin_at FROM pg_current_snapshot() now;
  UPDATE transaction_numbers SET cluster = here, restored = begin_at, base = begin_at - oldest;
  EXECUTE format('CREATE OR REPLACE FUNCTION change_number() RETURNS bigint LANGUAGE sql STABLE AS %L',
    format('SELECT %s + pg_current_xact_id()::text::bigint', begin_at - oldest));
END $$;
-- +goose StatementEnd
-- As before, and a comment without its contact was updated: who asks for what was since a moment is
-- told of it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "leave_votes_and_comments"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE votes SET contact_id = NULL, mrr_cents = NULL, currency = NULL
  WHERE organization_id = OLD.organization_id AND contact_id = OLD.id;
  UPDATE comments SET contact_id = NULL, updated_at = greatest(updated_at, clock_timestamp())
  WHERE organization_id = OLD.organization_id AND contact_id = OLD.id;
  RETURN OLD;
END
$$;
-- +goose StatementEnd
-- As before, but for votes that have the copy already.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "pass_revenue_on"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Most have no vote, and to look takes less than to update none. Those of many contacts at once
  -- are told before.
  IF EXISTS (SELECT FROM votes WHERE organization_id = NEW.organization_id AND contact_id = NEW.id
    AND (mrr_cents, currency) IS DISTINCT FROM (NEW.mrr_cents, NEW.currency)) THEN
    UPDATE votes SET mrr_cents = NEW.mrr_cents, currency = NEW.currency
    WHERE organization_id = NEW.organization_id AND contact_id = NEW.id;
  END IF;
  RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "pass_revenue_on"() RETURNS trigger LANGUAGE plpgsql AS $$
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
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION "number_changes_anew"("if_in_another_cluster" boolean DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  here bigint := (SELECT system_identifier FROM pg_control_system());
  begin_at bigint;
BEGIN
  IF if_in_another_cluster AND EXISTS (SELECT FROM transaction_numbers WHERE cluster = here) THEN
    RETURN;
  END IF;
  -- Until nobody is writing with numbers from before.
  LOCK TABLE posts, comments, contacts, changelog_entries IN SHARE MODE;
  UPDATE transaction_numbers SET cluster = here, restored = next, base = next - oldest FROM (
    SELECT extract(epoch FROM clock_timestamp())::bigint * 1000000000 AS next,
      pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest
  ) n WHERE NOT if_in_another_cluster OR cluster <> here RETURNING base INTO begin_at;
  IF FOUND THEN
    EXECUTE format('CREATE OR REPLACE FUNCTION change_number() RETURNS bigint LANGUAGE sql STABLE AS %L',
      format('SELECT %s + pg_current_xact_id()::text::bigint', begin_at));
  END IF;
END $$;
-- +goose StatementEnd
