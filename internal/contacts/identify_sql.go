package contacts

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/ent/db"
	"earshot/ent/db/contact"
	"earshot/internal/postgres"
)

// The columns are listed by name, because a newer schema may have more of them.
var contactColumns = strings.Join(contact.Columns, ", ")

// FoundContact is the answer of SeeContacts for an external id. It has the contact if the
// transaction has locked it.
type FoundContact struct {
	db.Contact
	Wanted string
	// Known is true if the contact exists. Large is true if it was skipped because of its metadata.
	Known bool
	Large bool
}

// Locked reports whether the transaction has locked the contact.
func (f *FoundContact) Locked() bool { return !f.ID.IsZero() }

// Each id is looked up separately. With one condition for all ids, the planner might scan a whole
// organization that has grown since its statistics were collected.
//
// The array is selected, which hides its length from the planner. Otherwise Postgres would plan the
// statement for each length anew, and planning takes longer than executing. Here and wherever
// arrays are selected, it keeps one plan. One plan is enough, because LATERAL with LIMIT 1 uses an
// index in any plan.
//
// The array makes Postgres lock all contacts before it updates the first one. It is read only once: a
// contact that changed while the statement waited is checked against the same array.
//
// The conditions on the organization with IS NOT DISTINCT FROM cannot use an index. An index of the
// organization leads to all of its contacts.
var seeContactsSQL = `
WITH found AS (
  SELECT w.external_user_id AS wanted, w.id IS NOT NULL AS known, coalesce(w.large, false) AS large, c.id AS locked FROM (
    SELECT t.external_user_id, s.id, s.large FROM unnest((SELECT $2::text[])) t(external_user_id) LEFT JOIN LATERAL (
      SELECT id, $3 > 0 AND octet_length(metadata::text) > $3 AS large FROM contacts
      WHERE organization_id = $1 AND external_user_id = t.external_user_id LIMIT 1
    ) s ON true ORDER BY s.id
  ) w LEFT JOIN LATERAL (
    SELECT id FROM contacts
    WHERE NOT w.large AND id = w.id AND organization_id IS NOT DISTINCT FROM $1 AND external_user_id IS NOT DISTINCT FROM w.external_user_id
    LIMIT 1 FOR NO KEY UPDATE%s
  ) c ON true
), seen AS (
  UPDATE contacts SET last_seen_at = greatest(last_seen_at, $4)
  WHERE organization_id IS NOT DISTINCT FROM $1 AND id = ANY (ARRAY(SELECT locked FROM found))
  RETURNING ` + contactColumns + `
)
SELECT wanted, known, large, seen.* FROM found LEFT JOIN seen ON id = locked`

// SeeContacts finds contacts by their external ids, locks them in the order of their ids, and advances
// the time at which they were last seen. The time never goes back, even if the clock of another
// process is behind. SeeContacts skips contacts with more than most bytes of metadata; 0 is no limit.
// It skips contacts that other transactions hold if skipHeld is set.
func SeeContacts(
	ctx context.Context, tx *db.Tx, ids []string, at time.Time, most int, skipHeld bool,
) ([]*FoundContact, error) {
	var found []*FoundContact
	err := postgres.QueryTx(ctx, tx, postgres.All(&found, scanFound), fmt.Sprintf(seeContactsSQL, postgres.SkipLocked(skipHeld)), ids, most, at)
	if err != nil {
		return nil, errors.Wrap(err, "lock the contacts")
	}
	return found, nil
}

// scanFound reads a row of seeContactsSQL. Without a locked contact, its columns are null.
func scanFound(row pgx.CollectableRow) (*FoundContact, error) {
	const ours = 3 // the columns before the contact's, of which the first is its id
	if row.RawValues()[ours] != nil {
		return pgx.RowToAddrOfStructByNameLax[FoundContact](row)
	}
	f := &FoundContact{}
	into := make([]any, len(row.RawValues())) // pgx skips nil
	into[0], into[1], into[2] = &f.Wanted, &f.Known, &f.Large
	return f, row.Scan(into...)
}

// As in seeContactsSQL, only ids lead to the contacts.
//
// Columns that a row doesn't contain keep their values. The statement sets only columns that some
// row contains, because a trigger rewrites a contact's search document whenever the address or the
// name is set.
const updateContactsSQL = `
UPDATE contacts c SET %s
FROM json_array_elements($2::json) told, contacts old, LATERAL json_populate_record(old, told) next
WHERE old.organization_id IS NOT DISTINCT FROM $1 AND old.id = (told ->> 'id')::uuid AND c.organization_id = old.organization_id AND c.id = old.id
RETURNING %s`

// The statement copies the revenue of all contacts to their votes before the trigger of each contact
// would. One statement for all votes updates the posts in a fixed order, so batches whose contacts
// voted for the same posts can't deadlock. The contacts are locked, so no vote is added meanwhile.
// Votes that already have the revenue are not written.
const tellVotesSQL = `
WITH paying AS (
  SELECT old.id, next.mrr_cents, next.currency
  FROM json_array_elements($2::json) told, contacts old, LATERAL json_populate_record(old, told) next
  WHERE old.organization_id IS NOT DISTINCT FROM $1 AND old.id = (told ->> 'id')::uuid
), voted AS (
  SELECT v.id, p.mrr_cents, p.currency FROM paying p, LATERAL (
    SELECT id FROM votes WHERE organization_id = $1 AND contact_id = p.id OFFSET 0
  ) v
)
UPDATE votes v SET mrr_cents = p.mrr_cents, currency = p.currency FROM voted p WHERE v.organization_id = $1 AND v.id = p.id
  AND (v.mrr_cents, v.currency) IS DISTINCT FROM (p.mrr_cents, p.currency)`

// UpdateContacts sets columns of locked contacts by their ids and returns the contacts.
func UpdateContacts(ctx context.Context, tx *db.Tx, rows []map[string]any) ([]*db.Contact, error) {
	set := map[string]string{}
	for _, row := range rows {
		for column := range row {
			set[column] = column + " = next." + column
		}
	}
	delete(set, contact.FieldID)
	if set[contact.FieldMrrCents] != "" || set[contact.FieldCurrency] != "" {
		if err := copyRevenues(ctx, tx, rows); err != nil {
			return nil, err
		}
	}
	text, err := encodeRows(rows)
	if err != nil {
		return nil, err
	}
	var updated []*db.Contact
	err = postgres.QueryTx(ctx, tx, postgres.All(&updated, pgx.RowToAddrOfStructByNameLax[db.Contact]), fmt.Sprintf(updateContactsSQL,
		strings.Join(slices.Sorted(maps.Values(set)), ", "), "c."+strings.Join(contact.Columns, ", c.")), text)
	if err != nil {
		return nil, errors.Wrap(err, "update the contacts")
	}
	return updated, nil
}

// copyRevenues copies the next revenue of locked contacts to their votes, before UPDATE statements of
// the single contacts do so. A row has the columns id, mrr_cents and currency of a contact.
func copyRevenues(ctx context.Context, tx *db.Tx, rows []map[string]any) error {
	text, err := encodeRows(rows)
	if err != nil {
		return err
	}
	if _, err := postgres.ExecTx(ctx, tx, tellVotesSQL, text); err != nil {
		return errors.Wrap(err, "copy the revenue to votes")
	}
	return nil
}

func encodeRows(rows []map[string]any) (string, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // keep the metadata as it is
	if err := e.Encode(rows); err != nil {
		return "", errors.Wrap(err, "encode the contacts")
	}
	return text.String(), nil
}

// Columns returns the columns that an Ent mutation of a row sets, in the form that UpdateContacts
// takes.
func Columns(id uuid.UUID, m db.Mutation) map[string]any {
	all := map[string]any{"id": id}
	for _, column := range m.Fields() {
		value, _ := m.Field(column)
		if raw, ok := value.([]byte); ok {
			value = `\x` + hex.EncodeToString(raw)
		}
		all[column] = value
	}
	return all
}
