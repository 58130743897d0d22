package backfill_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/backfill"
	"earshot/internal/change"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m) }

type object = map[string]any

// tenant is an organization with a public board and a post.
type tenant struct {
	*apptest.Tenant
	board publicid.Board
	post  publicid.Post
}

func newTenant(t *testing.T, app *apptest.App, plan string) *tenant {
	t.Helper()
	n := &tenant{Tenant: app.TenantOn(t, plan)}
	board := n.ID(t, "/v1/boards", object{"name": "Ideas", "public": true})
	n.board = publicid.Read[publicid.Board](board)
	n.post = publicid.Read[publicid.Post](n.ID(t, "/v1/boards/"+board+"/posts", object{"title": "Dark mode"}))
	return n
}

// day returns a day of January 2026.
func day(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }

// onBoard returns the context of a public board's page.
func (n *tenant) onBoard(t *testing.T) context.Context {
	t.Helper()
	return change.WithCaller(n.Context(t.Context()), &change.Caller{Organization: n.Organization})
}

// acts records an action of an anonymous visitor on the public board, at a time in the past.
func (n *tenant) acts(t *testing.T, kind, email string, at time.Time) {
	t.Helper()
	who := feedback.Visitor{Spelled: n.App.Feedback.Spelled(email)}
	ctx, f := n.onBoard(t), n.App.Feedback
	_, err := change.Run(ctx, n.App.Changes, change.Request[any]{}, func(c *change.Change) (_ any, err error) {
		switch kind {
		case "post":
			on, err := f.KeepForPost(ctx, c, n.board)
			require.NoError(t, err)
			return f.CreateVisitorsPost(ctx, c, on, "Export", "", who)
		case "vote":
			on, err := f.LockForVote(ctx, c, n.post, who)
			require.NoError(t, err)
			return nil, f.CastVisitorsVote(ctx, c, on)
		case "comment":
			on, err := f.LockForComment(ctx, c, n.post)
			require.NoError(t, err)
			return f.CreateVisitorsComment(ctx, c, on, "Yes", who)
		}
		return nil, err
	})
	require.NoError(t, err)
	n.exec(t, "UPDATE "+kind+"s SET created_at = $2 WHERE id = (SELECT id FROM "+kind+"s WHERE organization_id = $1 ORDER BY id DESC LIMIT 1)", at)
}

// votes inserts many votes with one statement.
func (n *tenant) votes(t *testing.T, emails []string, at time.Time) {
	t.Helper()
	hashes := make([][]byte, len(emails))
	for i, e := range emails {
		hashes[i] = n.App.Contacts.EmailHash(e)
	}
	n.exec(t, `INSERT INTO votes (id, organization_id, post_id, email_hash, created_at)
SELECT gen_random_uuid(), $1, $2, h, $4 FROM unnest($3::bytea[]) h`, n.post.UUID().String(), hashes, at)
}

// exec runs SQL whose first argument is the organization.
func (n *tenant) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := n.App.Pool.Exec(t.Context(), sql, append([]any{n.Organization.ID.UUID().String()}, args...)...)
	require.NoError(t, err)
}

// query runs SQL about the organization and returns the single column of its rows.
func query[T any](t *testing.T, n *tenant, sql string) []T {
	t.Helper()
	rows, err := n.App.Pool.Query(t.Context(), sql, n.Organization.ID.UUID().String())
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(t, err)
	return all
}

func people(emails ...string) (all []backfill.Person) {
	for _, e := range emails {
		all = append(all, backfill.Person{Email: e, Name: "Somebody"})
	}
	return all
}

// begin starts a backfill of activity before the tenth of January.
func (n *tenant) begin(t *testing.T, people []backfill.Person) publicid.ContactBackfill {
	t.Helper()
	made, err := n.App.Backfills.Begin(n.Context(t.Context()), backfill.Wanted{Before: day(10), People: people, Invalid: 7})
	require.NoError(t, err)
	return made.ID
}

// finish processes all pages, as a worker does.
func (n *tenant) finish(t *testing.T, id publicid.ContactBackfill) backfill.Progress {
	t.Helper()
	for {
		p, err := n.App.Backfills.Continue(t.Context(), id)
		require.NoError(t, err)
		if p.Status != "running" {
			return p
		}
	}
}

// left returns the number of stored addresses.
func (n *tenant) left(t *testing.T) int {
	t.Helper()
	return query[int](t, n, "SELECT count(*)::int FROM backfill_addresses WHERE organization_id = $1")[0]
}

func (n *tenant) found(t *testing.T, filter string) []any {
	t.Helper()
	return n.Do(t, http.MethodGet, "/v1/contacts"+filter, nil).Body["data"].([]any)
}

// contact returns the contact with an address, or nil.
func (n *tenant) contact(t *testing.T, email string) object {
	t.Helper()
	found := n.found(t, "?email="+email)
	if len(found) == 0 {
		return nil
	}
	require.Len(t, found, 1)
	return found[0].(object)
}

func (n *tenant) events(t *testing.T, kind string) []any {
	t.Helper()
	return n.Do(t, http.MethodGet, "/v1/events?types="+kind, nil).Body["data"].([]any)
}
