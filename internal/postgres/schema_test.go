package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// reference is a foreign key, as the database knows it.
type reference struct {
	name, child, parent string
	columns, parents    []string
}

// own are the columns of the reference without the organization.
func (r reference) own() []string {
	return slices.DeleteFunc(slices.Clone(r.columns), func(c string) bool { return c == "organization_id" })
}

const referencesSQL = `
SELECT k.conname, k.conrelid::regclass::text, k.confrelid::regclass::text,
  array(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u(n, o)
    JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY u.o),
  array(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u(n, o)
    JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.n ORDER BY u.o)
FROM pg_constraint k WHERE k.contype = 'f' ORDER BY 1`

// references are the foreign keys between tables of an organization.
func references(t *testing.T, c *pgx.Conn) []reference {
	t.Helper()
	found, err := pgx.CollectRows(fixture.Query(t, c, referencesSQL), func(row pgx.CollectableRow) (r reference, err error) {
		return r, row.Scan(&r.name, &r.child, &r.parent, &r.columns, &r.parents)
	})
	require.NoError(t, err)
	found = slices.DeleteFunc(found, func(r reference) bool { return r.parent == "organizations" })
	require.NotEmpty(t, found)
	return found
}

// try runs a statement and rolls it back.
func try(t *testing.T, c *pgx.Conn, sql string, args ...any) error {
	t.Helper()
	tx, err := c.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	_, err = tx.Exec(t.Context(), sql, args...)
	return err
}

// requireRefused expects that the foreign key with this name refused a statement, or any foreign key
// if the name is empty.
func requireRefused(t *testing.T, err error, name string) {
	t.Helper()
	var refusal *pgconn.PgError
	require.True(t, errors.As(err, &refusal), "not refused: %v", err)
	require.Equal(t, "23503", refusal.Code, refusal.Message)
	if name != "" {
		require.Equal(t, name, refusal.ConstraintName)
	}
}

func TestEveryReferenceBetweenRowsNamesTheirOrganization(t *testing.T) {
	t.Parallel()
	for _, r := range references(t, fixture.Connect(t, testkit.SharedDatabase(t))) {
		at := slices.Index(r.columns, "organization_id")
		require.GreaterOrEqual(t, at, 0, r.name)
		require.Equal(t, "organization_id", r.parents[at], r.name)
	}
}

// documents are the tables that only triggers write. They have no entity.
var documents = []string{"contact_documents", "post_documents", "post_revenues"}

func TestARowCanNotPointAtAnotherOrganizations(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s := fixture.Open(t, url)
	ours, theirs := fixture.Seed(t, s), fixture.Seed(t, s)
	c := fixture.Connect(t, url)
	for _, table := range documents {
		// A post has one document at most. One of ours stays, and theirs go to make room for it.
		_, err := c.Exec(t.Context(), fmt.Sprintf("DELETE FROM %[1]s WHERE ctid <> (SELECT min(ctid) FROM %[1]s WHERE organization_id = $1)", table), ours.Organization)
		require.NoError(t, err)
	}
	all := references(t, c)
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) {
			require.Len(t, r.own(), 1, "a reference by one column is what this test knows how to bend")
			err := try(t, c, fmt.Sprintf("UPDATE %s SET %s = (SELECT id FROM %s WHERE organization_id = $2 LIMIT 1) WHERE organization_id = $1",
				r.child, r.own()[0], r.parent), ours.Organization, theirs.Organization)
			requireRefused(t, err, r.name)
		})
	}
	for _, name := range []string{"comments_self_parent", "posts_self_merged_into"} {
		require.True(t, slices.ContainsFunc(all, func(r reference) bool { return r.name == name }), name)
	}
}

// unchecked are the columns that hold another row's id without a foreign key,
// with the reason.
var unchecked = []string{
	// A replay outlives the delivery that it repeats, which retention removes.
	"deliveries.replay_of",
	// The same goes for the place that a recovery has reached.
	"recoveries.position",
	// No query finds the tombstone of a deleted board, and the retention removes it.
	"tombstones.board_id",
	// It is always the key of the request, never an input. A reference would lock that key's row, which
	// each request with the key updates.
	"api_keys.created_by_key_id",
	// A crash may lose a bucket, and its writes must not lock the key or the webhook.
	"token_buckets.bucket_id", "rate_limits.api_key_id",
	"webhook_throttles.webhook_id",
	// A guest stays the author of its comments after the contact is deleted.
	"users.contact_id",
	// The audit trail outlives the members and keys in it.
	"audit_entries.user_id", "audit_entries.api_key_id",
	// A post or entry may be deleted before its e-mails are sent. A digest has no row of its own.
	"subscriber_updates.post_id", "subscriber_updates.entry_id", "subscriber_updates.digest_id", "subscriber_mails.digest_id",
	// A receipt outlives its contact. A row that an erasure has noted may be deleted before its
	// turn.
	"subject_requests.contact_id", "subject_requests.position", "subject_records.item_id",
}

func TestEveryColumnThatHoldsAnIDIsAReference(t *testing.T) {
	t.Parallel()
	c := fixture.Connect(t, testkit.SharedDatabase(t))
	columns := fixture.Texts(t, c, `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = 'public' AND data_type = 'uuid' AND column_name NOT IN ('id', 'organization_id') ORDER BY 1`)
	var checked []string
	for _, r := range references(t, c) {
		checked = append(checked, r.child+"."+strings.Join(r.own(), "+"))
	}
	require.ElementsMatch(t, columns, append(checked, unchecked...))
}

// A table could hold rows without an organization if no reference of columns that are never null
// leads to one.
func TestEveryRowBelongsToAnOrganizationThatExists(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	r := fixture.Seed(t, s)
	c := fixture.Connect(t, testkit.SharedDatabase(t))
	tables := fixture.Texts(t, c, `SELECT table_name FROM information_schema.columns
		WHERE table_schema = 'public' AND column_name = 'organization_id' ORDER BY 1`)
	require.Len(t, tables, len(entities(s.Client()))+len(documents)+5,
		"and idempotency_records, event_sequences, tombstones, address_spellings and first_mails, which are written by hand")
	for _, table := range tables {
		anchors := fixture.Texts(t, c, `SELECT k.conname FROM pg_constraint k
			WHERE k.contype = 'f' AND k.conrelid = $1::text::regclass AND NOT EXISTS (
				SELECT FROM unnest(k.conkey) n JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = n
				WHERE NOT a.attnotnull)
			AND k.conrelid <> k.confrelid`, table)
		require.NotEmpty(t, anchors, table)
		nullable := fixture.Texts(t, c, `SELECT table_name FROM information_schema.columns
			WHERE table_name = $1 AND column_name = 'organization_id' AND is_nullable = 'YES'`, table)
		require.Empty(t, nullable)
		err := try(t, c, "UPDATE "+table+" SET organization_id = $2 WHERE organization_id = $1", r.Organization, publicid.NewOrganization())
		requireRefused(t, err, "")
	}
}
