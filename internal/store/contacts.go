package store

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
	"earshot/internal/publicid"
)

// The columns by name: a schema that is ahead may have more.
var contactColumns = strings.Join(contact.Columns, ", ")

// seenColumns are those with the id that a caller asked for, which is there without the others.
var seenColumns = "told_id AS external_user_id, " +
	strings.Join(slices.DeleteFunc(slices.Clone(contact.Columns), func(c string) bool { return c == contact.FieldExternalUserID }), ", ")

// Each id is looked for by itself: for all at once the database would rather go through an
// organization that it takes for small, because it grew since its statistics were made.
//
// The array is selected: where the database saw how long it is, it would plan the statement
// for that length each time, which takes longer than to execute it. So it keeps one plan, here
// and wherever arrays are selected. It may: LATERAL with LIMIT 1 is by an index in any plan.
const seeSQL = `
WITH there AS (
  SELECT w.external_user_id AS told_id, c.* FROM (SELECT DISTINCT unnest((SELECT $2::text[])) AS external_user_id) w, LATERAL (
    SELECT id AS there_id, %s AS complete FROM contacts WHERE organization_id = $1 AND external_user_id = w.external_user_id
    LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
  ) c
), seen AS (
  UPDATE contacts SET last_seen_at = greatest(last_seen_at, $3) FROM there WHERE id = there_id AND complete RETURNING %s
)
SELECT %s FROM there LEFT JOIN seen ON id = there_id`

// SeeContacts notes that contacts of an organization were seen, by the callers' own ids for
// them, and returns them. It leaves out those that aren't there or that somebody holds.
// Incomplete, and not seen, are the ids of those that can be told a trait, by its column, that is
// still null, or metadata, whose keys no column tells, and of those that have more bytes of
// metadata than most, 0 for any. It is one statement, because identifying contacts that are known is what integrators do most; Ent would take a
// transaction for each. Time only advances, whatever the clock of another process says.
func (s *Store) SeeContacts(
	ctx context.Context, of publicid.Organization, ids []string, at time.Time, told []string, most int,
) (seen []*db.Contact, incomplete []string, err error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, fmt.Sprintf(seeSQL, complete(told, most), contactColumns, seenColumns), rawID(of), ids, at)
	if err != nil {
		return nil, nil, errors.Wrap(err, "note that contacts were seen")
	}
	seen, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*db.Contact, error) {
		if raw := row.RawValues(); raw[1] == nil { // the update has no such row, so no id
			incomplete = append(incomplete, string(raw[0]))
			return nil, nil
		}
		return pgx.RowToAddrOfStructByNameLax[db.Contact](row)
	})
	if err != nil {
		return nil, nil, errors.Wrap(err, "note that contacts were seen")
	}
	return slices.DeleteFunc(seen, func(c *db.Contact) bool { return c == nil }), incomplete, nil
}

// complete is the condition by which a contact can't learn anything from those traits.
func complete(told []string, most int) string {
	all := []string{"true"}
	if most > 0 {
		all = append(all, fmt.Sprintf("octet_length(metadata::text) <= %d", most))
	}
	for _, column := range told {
		if column == contact.FieldMetadata {
			return "false"
		}
		all = append(all, column+" IS NOT NULL")
	}
	return strings.Join(all, " AND ")
}

var insertContactsSQL = withEvents(`
WITH made AS (
  INSERT INTO contacts (organization_id, id, external_user_id, email, email_hash, name, plan, mrr_cents, currency, metadata,
    source, consent_basis, created_at, updated_at, first_seen_at, last_seen_at)
  SELECT $1::uuid, c.*, c.created_at, c.created_at, c.created_at
  FROM unnest($2::uuid[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::json[],
    $11::text[], $12::text[], $13::timestamptz[])
    c(id, external_user_id, email, email_hash, name, plan, mrr_cents, currency, metadata, source, consent_basis, created_at)
  ON CONFLICT DO NOTHING
  RETURNING id
)`, 14)

// InsertContacts inserts contacts that are new, each with its event. Made tells which: where a
// caller's own id is taken, the contact isn't inserted.
func (p *Pipeline) InsertContacts(contacts []*db.Contact, h *Happened, made *[]uuid.UUID) {
	n := len(contacts)
	ids, hashes, at := make(uuidArray, n), make([][]byte, n), make([]time.Time, n)
	externalIDs, emails, names, plans := make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	revenues, currencies, metadata := make([]*int64, n), make([]*string, n), make([]string, n)
	sources, bases := make([]string, n), make([]string, n)
	for i, c := range contacts {
		ids[i], externalIDs[i], emails[i], names[i], plans[i] = rawID(c.ID), c.ExternalUserID, c.Email, c.Name, c.Plan
		revenues[i], currencies[i], metadata[i] = c.MrrCents, c.Currency, string(c.Metadata)
		sources[i], bases[i], at[i] = c.Source, c.ConsentBasis, c.CreatedAt
		if c.EmailHash != nil {
			hashes[i] = *c.EmailHash
		}
	}
	collect(p, made, pgx.RowTo[uuid.UUID], insertContactsSQL, append([]any{
		p.of, ids, externalIDs, emails, hashes, names, plans, revenues, currencies, metadata, sources, bases, at,
	}, h.args()...)...)
}

var lockContactsSQL = `
SELECT c.* FROM unnest((SELECT $2::text[])) w(external_user_id), LATERAL (
  SELECT ` + contactColumns + ` FROM contacts
  WHERE organization_id = $1 AND external_user_id = w.external_user_id AND octet_length(metadata::text) <= $3
  LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
) c`

// LockContacts finds contacts by the caller's own ids for them and keeps others from changing
// them. It leaves out those that somebody holds, and those with more bytes of metadata than most.
func (p *Pipeline) LockContacts(ids []string, most int, found *[]*db.Contact) {
	collect(p, found, pgx.RowToAddrOfStructByNameLax[db.Contact], lockContactsSQL, p.of, ids, most)
}

// Each row keeps what isn't told of it. Only columns that some row is told are set: a trigger
// writes the words of a contact anew where an address or a name is.
const updateContactsSQL = `
UPDATE contacts c SET %s
FROM json_array_elements($2::json) told, contacts old, LATERAL json_populate_record(old, told) next
WHERE old.organization_id = $1 AND old.id = (told ->> 'id')::uuid AND c.organization_id = $1 AND c.id = old.id
RETURNING %s`

// What contacts pay is told to all of their votes at once, before the trigger of each contact would:
// posts are counted in their order by one statement, and so that batches whose contacts voted for the
// same posts don't wait for each other in a circle. The contacts are locked, so no vote comes meanwhile.
// Votes that have it already, as those of contacts in the batch who pay what they did, aren't written.
const tellVotesSQL = `
WITH paying AS (
  SELECT old.id, next.mrr_cents, next.currency
  FROM json_array_elements($2::json) told, contacts old, LATERAL json_populate_record(old, told) next
  WHERE old.organization_id = $1 AND old.id = (told ->> 'id')::uuid
), voted AS (
  SELECT v.id, p.mrr_cents, p.currency FROM paying p, LATERAL (
    SELECT id FROM votes WHERE organization_id = $1 AND contact_id = p.id OFFSET 0
  ) v
)
UPDATE votes v SET mrr_cents = p.mrr_cents, currency = p.currency FROM voted p WHERE v.organization_id = $1 AND v.id = p.id
  AND (v.mrr_cents, v.currency) IS DISTINCT FROM (p.mrr_cents, p.currency)`

// UpdateContacts sets columns of contacts that are locked, by their ids, and returns them.
func (p *Pipeline) UpdateContacts(rows []map[string]any, updated *[]*db.Contact) error {
	set := map[string]string{}
	for _, row := range rows {
		for column := range row {
			set[column] = column + " = next." + column
		}
	}
	delete(set, contact.FieldID)
	text, err := encodeRows(rows)
	if err != nil {
		return err
	}
	if set[contact.FieldMrrCents] != "" || set[contact.FieldCurrency] != "" {
		p.queued.Queue(tellVotesSQL, p.of, text)
	}
	collect(p, updated, pgx.RowToAddrOfStructByNameLax[db.Contact], fmt.Sprintf(updateContactsSQL,
		strings.Join(slices.Sorted(maps.Values(set)), ", "), "c."+strings.Join(contact.Columns, ", c.")), p.of, text)
	return nil
}

const (
	lockOrganizationSQL = `SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE`
	countContactsSQL    = `SELECT count(*) FROM contacts WHERE organization_id = $1`
)

// LockAndCountContacts has the changes under a cap of the organization made one at a time, and
// counts its contacts once it is this one's turn.
func (p *Pipeline) LockAndCountContacts(n *int) {
	p.queued.Queue(lockOrganizationSQL, p.of)
	p.queued.Queue(countContactsSQL, p.of).QueryRow(func(row pgx.Row) error { return row.Scan(n) })
}

func encodeRows(rows []map[string]any) (string, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // metadata stays as it was written
	if err := e.Encode(rows); err != nil {
		return "", errors.Wrap(err, "encode the contacts")
	}
	return text.String(), nil
}

// Columns are what an Ent mutation of a row sets, by column, in the form that UpdateContacts
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

var insertEventsSQL = withEvents("WITH made AS (SELECT unnest($2::uuid[]) AS id)", 3)

// InsertEvents records the events of rows that were inserted before.
func (p *Pipeline) InsertEvents(of []uuid.UUID, h *Happened) {
	if len(h.events) == 0 {
		return
	}
	p.queued.Queue(insertEventsSQL, append([]any{p.of, of}, h.args()...)...)
}
