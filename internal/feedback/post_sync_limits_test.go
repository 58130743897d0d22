package feedback_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"earshot/ent/db/predicate"
	"earshot/internal/contacts"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/retention"
)

// parts returns the name of a cursor's list and the cursor's place.
func parts(t *testing.T, cursor string) (list string, place []string) {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	require.NoError(t, err)
	all := strings.Split(string(raw), "/")
	return all[0], all[1:]
}

// After a crash, Postgres continues with a number beyond its last checkpoint and beyond all committed
// changes. Tests of internal/store prove this.
func TestASyncCursorNeverExceedsTheChangeNumbersAfterACrash(t *testing.T) {
	t.Parallel()
	n := &tenant{inTurns.Start(t).Tenant(t)}
	n.Post(t)
	db := n.connect(t)
	rollBack := func() {
		_, err := db.Exec(t.Context(), "DO $$ BEGIN FOR i IN 1..50 LOOP PERFORM pg_current_xact_id(); ROLLBACK; END LOOP; END $$")
		require.NoError(t, err)
	}
	within := func(cursor string) (in int64) {
		_, place := parts(t, cursor)
		var left int64
		require.NoError(t, db.QueryRow(t.Context(), `SELECT greatest((SELECT max(changed_in) + 1 FROM posts),
			base + (SELECT split_part(next_xid, ':', 2)::bigint FROM pg_control_checkpoint())) FROM transaction_numbers`).Scan(&left))
		for _, part := range []string{place[0], place[2]} { // the end of the page, and the start of the copy
			var err error
			in, err = strconv.ParseInt(part, 10, 64)
			require.NoError(t, err)
			require.LessOrEqual(t, in, left)
		}
		in, err := strconv.ParseInt(place[0], 10, 64)
		require.NoError(t, err)
		return in
	}
	rollBack()
	c := newCopy(n, "/v1/posts?"+since)
	c.catchesUp(t, "/v1/posts?limit=100")
	before := within(c.cursor)
	rollBack()
	require.Zero(t, c.poll(t), "what was told isn't told again")
	within(c.cursor)
	_, err := db.Exec(t.Context(), "CHECKPOINT")
	require.NoError(t, err)
	for within(c.cursor) <= before { // until the other transactions have ended
		require.Zero(t, c.poll(t))
	}
}

// The retention may remove tombstones while a client reads a page.
func TestATombstoneThatGoesWhileAPageIsReadIsToldOfOrThePageIsRefused(t *testing.T) {
	t.Parallel()
	n := &tenant{inTurns.Start(t).Tenant(t)}
	gone := n.ID(t, "/v1/contacts", object{})
	c := newCopy(n, "/v1/contacts?sort=updated&includeDeleted=true")
	c.catchesUp(t, "/v1/contacts?limit=100")
	n.Make(t, http.MethodDelete, "/v1/contacts/"+gone, nil)
	ctx, yes := n.Context(t.Context()), true
	var bad problem.Fields
	name, _ := parts(t, c.cursor)
	at := page.Query{Cursor: &c.cursor}.SyncPlace(&bad, name)
	require.NoError(t, bad.Err())
	_, err := page.Changed[publicid.Contact, *contacts.ListedContact, predicate.Contact]{
		LargeRows: page.LargeRows[publicid.Contact, *contacts.ListedContact]{
			ID:   func(c *contacts.ListedContact) publicid.Contact { return c.ID },
			Size: func(*contacts.ListedContact) int { return 1 },
		},
		Store: n.App.Store, Deletions: page.DeletedContacts,
		In:      func(c *contacts.ListedContact) int64 { return c.ChangedIn },
		Deleted: func(id uuid.UUID) string { return publicid.Of[publicid.Contact](id).String() },
		Rows: func(int, predicate.Contact) ([]*contacts.ListedContact, error) {
			_, _, err := retention.RemoveTombstones(context.WithoutCancel(ctx), n.App.Store, time.Now().Add(time.Hour))
			return nil, err
		},
	}.Page(ctx, at, 25, page.Sync{IncludeDeleted: &yes})
	require.True(t, problem.Is(err, problem.Gone), "%v", err)
}
