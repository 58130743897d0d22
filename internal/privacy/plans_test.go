package privacy_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/privacy"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
)

// One database has the events of all organizations. The smallest organization may also send requests.
func TestTheWalkThroughEventsGoesPastThoseOfOtherOrganizations(t *testing.T) {
	t.Parallel()
	s, c, asked := testkit.Asked(t)
	_, err := c.Exec(t.Context(), `
		INSERT INTO organizations (id, created_at, updated_at, name)
			SELECT gen_random_uuid(), now(), now(), n::text FROM generate_series(1, 4) n;
		INSERT INTO events (id, organization_id, created_at, type, payload)
			SELECT gen_random_uuid(), o.id, now(), 'post.created', '{}' FROM organizations o, generate_series(1, 5000 * o.name::int) n;
		ANALYZE; SET plan_cache_mode = force_generic_plan`)
	require.NoError(t, err)
	ctx := postgres.WithOrganization(t.Context(), publicid.NewOrganization())
	err = s.InTx(ctx, func(tx *db.Tx) error {
		_, err := privacy.EventHeads(ctx, tx, uuid.Nil, event.SubjectBytes, 2000)
		return err
	})
	require.NoError(t, err)
	for _, q := range asked.All() {
		if strings.Contains(q.SQL, "FROM events") {
			testkit.RequireIndexed(t, testkit.KeptPlan(t, c, q), "events", "organization_id")
			return
		}
	}
	require.Fail(t, "nothing was asked")
}

// The service keeps a day of answers of all organizations. An erasure must not read all of them.
func TestAnErasureFindsKeptAnswersByAnIndex(t *testing.T) {
	t.Parallel()
	s, c, asked := testkit.Asked(t)
	_, err := c.Exec(t.Context(), `
		INSERT INTO organizations (id, created_at, updated_at, name) VALUES (gen_random_uuid(), now(), now(), 'one');
		INSERT INTO idempotency_records (id, organization_id, created_at, fingerprint, status, answer, subjects)
			SELECT sha256(n::text::bytea), o.id, now(), '', 200, '', ARRAY[gen_random_uuid()] FROM organizations o, generate_series(1, 20000) n;
		ANALYZE; SET plan_cache_mode = force_generic_plan`)
	require.NoError(t, err)
	ctx := postgres.WithOrganization(t.Context(), publicid.NewOrganization())
	err = s.InTx(ctx, func(tx *db.Tx) error {
		return change.RemoveAnswers(ctx, tx, uuid.New())
	})
	require.NoError(t, err)
	for _, q := range asked.All() {
		if strings.Contains(q.SQL, "DELETE FROM idempotency_records") {
			testkit.RequireIndexed(t, testkit.KeptPlan(t, c, q), "idempotency_records", "subjects")
			return
		}
	}
	require.Fail(t, "nothing was asked")
}
