package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"google.golang.org/protobuf/encoding/protojson"

	"earshot/activities"
	"earshot/ent/db"
	"earshot/internal/backfill"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/workflows"
)

func TestABackfillGoesOnUntilItsRowSaysThatItIsOver(t *testing.T) {
	t.Parallel()
	env := environment(t)
	id, calls := publicid.NewContactBackfill(), 0
	env.RegisterActivityWithOptions(func(_ context.Context, p activities.BackfillParams) (activities.BackfillProgress, error) {
		require.Equal(t, id, p.Backfill)
		if calls++; calls < 3 {
			return activities.BackfillProgress{Status: "running", Addresses: 300, Left: 300 - 100*calls}, nil
		}
		return activities.BackfillProgress{Status: "completed", Addresses: 300}, nil
	}, activity.RegisterOptions{Name: activities.ContinueBackfillName})
	env.ExecuteWorkflow(workflows.BackfillContacts, activities.BackfillParams{Backfill: id})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 3, calls)
}

// backfilled is an organization with old activity of a number of people.
type backfilled struct {
	*bundle
	held *pgx.Conn
}

func newBackfilled(t *testing.T, app *apptest.App, people int) (*backfilled, []backfill.Person) {
	t.Helper()
	b := &backfilled{bundle: newBundle(t, app)}
	var err error
	b.held, err = pgx.Connect(t.Context(), b.app.Config.DatabaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.held.Close(context.Background()) })
	known, hashes := make([]backfill.Person, people), make([][]byte, people)
	for i := range known {
		known[i] = backfill.Person{Email: fmt.Sprintf("p%d@customer.example", i), Name: "Noor"}
		hashes[i] = b.app.Contacts.EmailHash(known[i].Email)
	}
	b.post(t)
	_, err = b.held.Exec(t.Context(), `INSERT INTO votes (id, organization_id, post_id, email_hash, created_at)
SELECT gen_random_uuid(), p.organization_id, p.id, h, '2026-01-01' FROM posts p, unnest($1::bytea[]) h WHERE p.organization_id = $2`, hashes, b.tenant.Organization.ID.UUID())
	require.NoError(t, err)
	return b, known
}

func (b *backfilled) begin(t *testing.T, people []backfill.Person) *db.ContactBackfill {
	t.Helper()
	made, err := b.app.Backfills.Begin(b.tenant.Context(t.Context()), backfill.Wanted{Before: time.Now().Add(-time.Second), People: people})
	require.NoError(t, err)
	return made
}

// hold locks the organization's row, which every page waits for, and returns a function that
// unlocks it.
func (b *backfilled) hold(t *testing.T) (release func()) {
	t.Helper()
	_, err := b.held.Exec(t.Context(), "BEGIN; SELECT FROM organizations WHERE id = '"+b.tenant.Organization.ID.UUID().String()+"' FOR NO KEY UPDATE")
	require.NoError(t, err)
	return func() {
		_, err := b.held.Exec(t.Context(), "ROLLBACK")
		require.NoError(t, err)
	}
}

// counts returns the numbers of contacts, of contact.created events, and of stored addresses.
func (b *backfilled) counts(t *testing.T) (counts [3]int) {
	t.Helper()
	require.NoError(t, b.app.Pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM contacts WHERE organization_id = $1),
  (SELECT count(*) FROM events WHERE organization_id = $1 AND type = 'contact.created'),
  (SELECT count(*) FROM backfill_addresses WHERE organization_id = $1)`, b.tenant.Organization.ID.UUID()).Scan(&counts[0], &counts[1], &counts[2]))
	return counts
}

func TestABackfillGoesOnWhereAWorkerThatEndedInTheMiddleLeftIt(t *testing.T) {
	tier.Slow(t, "waits for the heartbeat timeout of an activity")
	t.Parallel()
	namespace, database := testkit.Namespace(t), testkit.Database(t)
	o := apptest.Options{Worker: true, Temporal: &namespace, DatabaseURL: database}
	var id publicid.ContactBackfill
	var tenant *apptest.Tenant
	middle, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = middle.Close(context.Background()) }()
	t.Run("the worker that ends", func(t *testing.T) {
		b, people := newBackfilled(t, apptest.Start(t, o), 150)
		tenant = b.tenant
		release := b.hold(t)
		id = b.begin(t, people).ID
		_, err := middle.Exec(t.Context(), "BEGIN; SELECT FROM backfill_addresses WHERE id = (SELECT id FROM backfill_addresses ORDER BY id OFFSET 120 LIMIT 1) FOR UPDATE")
		require.NoError(t, err)
		release()
		require.Eventually(t, func() bool { return b.counts(t) == [3]int{100, 100, 50} }, testkit.Wait, testkit.Tick)
	})
	_, err = middle.Exec(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	b := &backfilled{bundle: &bundle{app: apptest.Start(t, o), tenant: tenant}}
	var end activities.BackfillProgress
	require.NoError(t, b.app.Temporal.GetWorkflow(t.Context(), id.String(), "").Get(t.Context(), &end))
	require.Equal(t, activities.BackfillProgress{Status: "completed", Addresses: 150, Matched: 150, Created: 150}, end)
	require.Equal(t, [3]int{150, 150, 0}, b.counts(t), "each once")
}

func TestABackfillWhoseRunIsCanceledEndsAndKeepsNoAddress(t *testing.T) {
	t.Parallel()
	b, people := newBackfilled(t, working.Start(t), 150)
	b.cancelInTheMiddle(t, people)
	require.Equal(t, 0, b.counts(t)[2])
}

// cancelInTheMiddle cancels a run while it waits for its first page, and returns its id.
func (b *backfilled) cancelInTheMiddle(t *testing.T, people []backfill.Person) string {
	t.Helper()
	release := b.hold(t)
	made := b.begin(t, people)
	id := made.ID.String()
	b.app.Runs(t, "WorkflowId = '"+id+"'", 1)
	require.NoError(t, b.app.Temporal.CancelWorkflow(t.Context(), id, ""))
	release()
	require.Error(t, b.app.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	now, err := b.app.Backfills.Backfill(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, "canceled", string(now.Status))
	return id
}

func TestABackfillThatWasTerminatedEndsWithTheNextSweepAndOneThatWasNeverStartedBegins(t *testing.T) {
	t.Parallel()
	namespace, database := testkit.Namespace(t), testkit.Database(t)
	b, people := newBackfilled(t, apptest.Start(t, apptest.Options{Temporal: &namespace, DatabaseURL: database}), 3)
	ended, lost := b.begin(t, people), b.begin(t, people)
	for _, made := range []*db.ContactBackfill{ended, lost} {
		b.app.Runs(t, "WorkflowId = '"+made.ID.String()+"'", 1)
	}
	require.NoError(t, b.app.Temporal.TerminateWorkflow(t.Context(), ended.ID.String(), "", "an operator's"))
	_, err := b.held.Exec(t.Context(), "UPDATE contact_backfills SET created_at = now() - interval '1 hour'")
	require.NoError(t, err)
	apptest.Start(t, apptest.Options{Worker: true, Temporal: &namespace, DatabaseURL: database}) // it sweeps at its start
	for _, wanted := range []struct {
		id     publicid.ContactBackfill
		status string
	}{{ended.ID, "canceled"}, {lost.ID, "completed"}} {
		require.Eventually(t, func() bool {
			now, err := b.app.Backfills.Backfill(t.Context(), wanted.id)
			return err == nil && string(now.Status) == wanted.status
		}, testkit.Wait, 20*time.Millisecond, wanted.status)
	}
	require.Equal(t, [3]int{3, 3, 0}, b.counts(t))
}

func TestNothingOfAnAddressIsInTheHistoryOfABackfill(t *testing.T) {
	t.Parallel()
	b, people := newBackfilled(t, working.Start(t), 3)
	id := b.begin(t, people).ID.String()
	b.app.Runs(t, "WorkflowId = '"+id+"' AND ExecutionStatus = 'Completed'", 1)
	text := ""
	for events := b.app.Temporal.GetWorkflowHistory(t.Context(), id, "", false, 0); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		text += protojson.Format(event)
	}
	require.Contains(t, text, workflows.BackfillContactsName)
	require.False(t, strings.Contains(text, "customer.example") || strings.Contains(text, "Noor"))
}

// recordBackfill records a completed backfill and a canceled one.
func recordBackfill(t *testing.T) {
	b, people := newBackfilled(t, working.Start(t), 150)
	id := b.begin(t, people).ID.String()
	b.app.Runs(t, "WorkflowId = '"+id+"'", 1)
	writeHistory(t, b.app.Temporal, workflows.BackfillContactsName, "two_pages", id)
	writeHistory(t, b.app.Temporal, workflows.BackfillContactsName, "canceled", b.cancelInTheMiddle(t, people))
}
