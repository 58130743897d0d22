package page_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/contact"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
	"earshot/internal/testkit/tier"
)

func TestMain(m *testing.M) {
	tier.Properties(100, 30) // as many as in make test-all, because they take milliseconds
	testkit.Main(m)
}

// Add every new column to the trigger, too.
func TestEveryChangeOfAContactExceptItsSeenTimesIsNumbered(t *testing.T) {
	t.Parallel()
	url := testkit.SharedDatabase(t)
	numbered := fixture.Texts(t, fixture.Connect(t, url), `SELECT event_object_column FROM information_schema.triggered_update_columns
		WHERE event_object_table = 'contacts' AND trigger_name = 'number_change'`)
	never := []string{"id", "organization_id", "created_at", "source", "consent_basis", "first_seen_at", "last_seen_at", "changed_in"}
	require.ElementsMatch(t, contact.Columns, slices.Concat(numbered, never))
}

// Manual SQL and the previous release write no numbers. The trigger does.
func TestEveryChangeHasTheNumberOfItsTransaction(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	fixture.Seed(t, fixture.Open(t, url))
	c := fixture.Connect(t, url)
	for table, set := range map[string]string{
		"posts": "vote_count = vote_count + 1", "comments": "body_text = 'x'", "changelog_entries": "title = 'x'", "contacts": "name = 'x'",
	} {
		tx, err := c.Begin(t.Context())
		require.NoError(t, err)
		var now, then int64
		for range 2 { // the second update finds the number of the first one
			require.NoError(t, tx.QueryRow(t.Context(), "UPDATE "+table+" SET "+set+
				" WHERE id = (SELECT id FROM "+table+" LIMIT 1) RETURNING changed_in, change_number()").Scan(&then, &now))
			require.Equal(t, now, then, table)
		}
		require.NoError(t, tx.Commit(t.Context()))
	}
}

// The clock may be behind the one that started the earlier numbers, for example on another machine.
func TestNumbersThatBeginAnewAreBehindAllFromBefore(t *testing.T) {
	t.Parallel()
	c := fixture.Connect(t, testkit.Database(t))
	var last, began int64
	for _, set := range []string{"base = 5000000000000000000", "restored = 6000000000000000000, base = 0", "base = base"} {
		_, err := c.Exec(t.Context(), "UPDATE transaction_numbers SET "+set)
		require.NoError(t, err)
		const atLeast = "SELECT greatest(restored, base + pg_snapshot_xmax(pg_current_snapshot())::text::bigint) FROM transaction_numbers"
		require.NoError(t, c.QueryRow(t.Context(), atLeast).Scan(&last))
		_, err = c.Exec(t.Context(), "SELECT number_changes_anew()")
		require.NoError(t, err)
		require.NoError(t, c.QueryRow(t.Context(), "SELECT restored FROM transaction_numbers").Scan(&began))
		require.Greater(t, began, last, set)
		require.NoError(t, c.QueryRow(t.Context(), "SELECT change_number()").Scan(&last))
		require.GreaterOrEqual(t, last, began, set)
	}
}

// A role that owns only the database needs these functions to compute Changes.Durable.
func TestEveryRoleMayAskForTheLastCheckpoint(t *testing.T) {
	t.Parallel()
	c := fixture.Connect(t, testkit.SharedDatabase(t))
	var may bool
	require.NoError(t, c.QueryRow(t.Context(), `SELECT has_function_privilege('public', 'pg_control_checkpoint()', 'EXECUTE')
		AND has_function_privilege('public', 'pg_control_system()', 'EXECUTE')`).Scan(&may))
	require.True(t, may)
}
