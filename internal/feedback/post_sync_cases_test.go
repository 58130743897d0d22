package feedback_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/migrate"
	"earshot/internal/retention"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

// heldChange changes a post in a transaction of its own, and leaves the transaction open.
func heldChange(t *testing.T, n *tenant, post string) pgx.Tx {
	t.Helper()
	tx, err := n.connect(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "UPDATE posts SET title = 'late', updated_at = clock_timestamp() WHERE id = $1", rawID(t, post))
	require.NoError(t, err)
	return tx
}

func lateCommit(t *testing.T, n *tenant) {
	board := n.Board(t)
	late := n.ID(t, board+"/posts", object{"title": "A"})
	c := newCopy(n, board+"/posts?"+since)
	c.catchesUp(t, board+"/posts?limit=100")
	tx := heldChange(t, n, late)
	after := n.ID(t, board+"/posts", object{"title": "B"})
	c.poll(t)
	require.NotContains(t, c.rows, after, "a change that follows one that may still come waits for it")
	require.NoError(t, tx.Commit(t.Context()))
	c.catchesUp(t, board+"/posts?limit=100")
	require.Contains(t, c.rows[late], "late")
	require.Contains(t, c.rows, after)
}

// naivePoll shows the problem that lateCommit solves: a poll by time misses a late commit.
func naivePoll(t *testing.T, n *tenant) {
	board := n.Board(t)
	late := n.ID(t, board+"/posts", object{"title": "A"})
	tx := heldChange(t, n, late)
	after := n.Get(t, "/v1/posts/"+n.ID(t, board+"/posts", object{"title": "B"}))
	require.NoError(t, tx.Commit(t.Context()))
	c := newCopy(n, board+"/posts?includeDeleted=true&updatedSince="+url.QueryEscape(after["updatedAt"].(string)))
	for c.poll(t) == 0 { // until the other transactions have ended
	}
	require.Len(t, c.rows, 1)
	require.NotContains(t, c.rows, late)
}

func deletedBoard(t *testing.T, n *tenant) {
	board := n.ID(t, "/v1/boards", object{"name": "b"})
	post := n.ID(t, "/v1/boards/"+board+"/posts", object{"title": "A"})
	c := newCopy(n, "/v1/posts?"+since)
	c.catchesUp(t, "/v1/posts?limit=100")
	require.Contains(t, c.rows, post)
	n.Make(t, http.MethodDelete, "/v1/posts/"+post, nil)
	n.Make(t, http.MethodDelete, "/v1/boards/"+board, object{"confirmName": "b"})
	c.catchesUp(t, "/v1/posts?limit=100")
	require.Empty(t, c.rows)
}

func TestACopyThatMissedDeletionsForTooLongIsToldSo(t *testing.T) {
	t.Parallel()
	n := &tenant{inTurns.Start(t).Tenant(t)}
	kept, gone := n.ID(t, "/v1/contacts", object{}), n.ID(t, "/v1/contacts", object{})
	query := "/v1/contacts?sort=updated&includeDeleted=true"
	c := newCopy(n, query)
	c.catchesUp(t, "/v1/contacts?limit=100")
	n.Make(t, http.MethodDelete, "/v1/contacts/"+gone, nil)
	_, _, err := retention.RemoveTombstones(t.Context(), n.App.Store, time.Now().Add(time.Hour))
	require.NoError(t, err)
	a := n.Refused(t, "ERR_GONE", http.MethodGet, query+"&cursor="+url.QueryEscape(c.cursor), nil)
	require.Equal(t, "cursor_expired", a.Details()["reason"])
	again := newCopy(n, query)
	again.catchesUp(t, "/v1/contacts?limit=100")
	require.Contains(t, again.rows, kept)
	require.NotContains(t, again.rows, gone)
}

func countedAgain(t *testing.T, n *tenant) {
	post := n.Post(t)
	c := newCopy(n, "/v1/posts?"+since)
	c.catchesUp(t, "/v1/posts?limit=100")
	n.Make(t, http.MethodPost, post+"/votes", nil)
	n.Make(t, http.MethodPost, post+"/comments", object{"body": object{"text": "x"}})
	c.catchesUp(t, "/v1/posts?limit=100")
	for _, row := range c.rows {
		require.Contains(t, row, `"commentCount":1`)
		require.Contains(t, row, `"voteCount":1`)
	}
}

func foreignSyncCursor(t *testing.T, n *tenant) {
	n.Post(t)
	c := newCopy(n, "/v1/posts?"+since)
	c.catchesUp(t, "/v1/posts?limit=100")
	for _, query := range []string{"/v1/contacts?sort=updated", "/v1/posts?sort=updated", "/v1/posts?sort=newest"} {
		n.Refused(t, "ERR_VALIDATION", http.MethodGet, query+"&cursor="+url.QueryEscape(c.cursor), nil)
	}
	for _, place := range []string{"x/y/z", "1/2/3", "-1/00000000-0000-0000-0000-000000000000/0"} {
		n.Refused(t, "ERR_VALIDATION", http.MethodGet, "/v1/posts?"+since+"&cursor="+forged(t, c.cursor, place), nil)
	}
	ahead := forged(t, c.cursor, "9000000000000000000/00000000-0000-0000-0000-000000000000/1")
	n.Refused(t, "ERR_GONE", http.MethodGet, "/v1/posts?"+since+"&cursor="+ahead, nil)
}

// forged returns a cursor of the same list with another place.
func forged(t *testing.T, cursor, place string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	require.NoError(t, err)
	list, _, _ := strings.Cut(string(raw), "/")
	return base64.RawURLEncoding.EncodeToString([]byte(list + "/" + place))
}

// settledOnce has a cursor ahead of a transaction that counts as running. For example, a
// transaction of another database counts as running for a moment while it ends.
func settledOnce(t *testing.T, n *tenant) {
	post := n.ID(t, n.Board(t)+"/posts", object{"title": "A"})
	c := newCopy(n, "/v1/posts?"+since)
	c.catchesUp(t, "/v1/posts?limit=100")
	var number int64
	tx := heldChange(t, n, post)
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT change_number()").Scan(&number))
	n.Post(t)
	c.cursor = forged(t, c.cursor, fmt.Sprintf("%d/00000000-0000-0000-0000-000000000000/1", number+1))
	kept := c.cursor
	c.poll(t)
	require.Equal(t, kept, c.cursor)
	require.NoError(t, tx.Rollback(t.Context()))
	c.catchesUp(t, "/v1/posts?limit=100")
}

func unorderedSearch(t *testing.T, n *tenant) {
	board := n.Board(t)
	for path, fields := range map[string][]string{
		board + "/posts?q=x&sort=updated":                             {"sort"},
		board + "/posts?q=x&updatedSince=2020-01-01T00:00:00Z":        {"updatedSince"},
		board + "/posts?sort=votes&updatedSince=2020-01-01T00:00:00Z": {"updatedSince"},
		board + "/posts?sort=newest&includeDeleted=true":              {"includeDeleted"},
		"/v1/contacts?q=x&sort=updated":                               {"sort"},
		"/v1/contacts?sort=mrr&includeDeleted=true":                   {"includeDeleted"},
	} {
		require.Equal(t, fields, n.Refused(t, "ERR_VALIDATION", http.MethodGet, path, nil).Fields(), path)
	}
}

func updatedBefore(t *testing.T, n *tenant) {
	board := n.Board(t)
	before := n.ID(t, board+"/posts", object{"title": "A"})
	after := n.Get(t, "/v1/posts/"+n.ID(t, board+"/posts", object{"title": "B"}))
	c := newCopy(n, "/v1/posts?includeDeleted=true&updatedSince="+url.QueryEscape(after["updatedAt"].(string)))
	for c.poll(t) == 0 {
	}
	require.Len(t, c.rows, 1)
	require.Contains(t, c.rows, after["id"])
	n.Make(t, http.MethodDelete, "/v1/posts/"+before, nil)
	for c.poll(t) == 0 { // the copy does not know the post but gets its deletion
	}
	require.Len(t, c.rows, 1)
}

// A restored database reuses the numbers of lost changes. In another cluster, restored rows have
// numbers that the cluster assigns again later.
func TestACopyFromBeforeARestoreIsToldSoAndOneFromAfterItMissesNothing(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string][]string{
		"by the operator": {"SELECT number_changes_anew()"},
		"into another cluster": {
			"ALTER TABLE posts DISABLE TRIGGER number_change", "UPDATE posts SET changed_in = 1000000000000",
			"ALTER TABLE posts ENABLE TRIGGER number_change", "UPDATE transaction_numbers SET cluster = 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &tenant{apptest.Start(t, apptest.Options{Alone: true}).Tenant(t)} // the whole database is renumbered
			n.Post(t)
			before := newCopy(n, "/v1/posts?"+since)
			before.catchesUp(t, "/v1/posts?limit=100")
			db := n.connect(t)
			for _, sql := range restored {
				_, err := db.Exec(t.Context(), sql)
				require.NoError(t, err)
			}
			for range 2 { // processes start one after the other
				require.NoError(t, migrate.NumberChangesAnew(t.Context(), n.App.Store))
			}
			a := n.Refused(t, "ERR_GONE", http.MethodGet, before.query+"&cursor="+url.QueryEscape(before.cursor), nil)
			require.Equal(t, "cursor_expired", a.Details()["reason"])
			after := newCopy(n, "/v1/posts?"+since)
			after.catchesUp(t, "/v1/posts?limit=100")
			require.Len(t, after.rows, 1)
			require.NoError(t, migrate.NumberChangesAnew(t.Context(), n.App.Store))
			n.Post(t)
			after.catchesUp(t, "/v1/posts?limit=100")
			require.Len(t, after.rows, 2)
		})
	}
}

// Transaction numbers are per cluster, so a transaction in another database looks like a running
// writer of this one.
func TestATransactionInAnotherDatabaseHoldsUpNoCopy(t *testing.T) {
	t.Parallel()
	n, elsewhere := &tenant{inTurns.Start(t).Tenant(t)}, testkit.SharedDatabase(t)
	db, err := pgx.Connect(t.Context(), elsewhere)
	require.NoError(t, err)
	tx, err := db.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Conn().Close(context.WithoutCancel(t.Context())) })
	_, err = tx.Exec(t.Context(), "SELECT pg_current_xact_id()")
	require.NoError(t, err)
	n.Post(t)
	c := newCopy(n, "/v1/posts?"+since)
	c.catchesUp(t, "/v1/posts?limit=100")
	require.Len(t, c.rows, 1)
}

// A writer that began with the old numbers may commit after others have got new ones.
func TestRenumberingWaitsForWritersWithTheOldChangeNumbers(t *testing.T) {
	t.Parallel()
	n := &tenant{inTurns.Start(t).Tenant(t)}
	tx := heldChange(t, n, n.ID(t, n.Board(t)+"/posts", object{"title": "A"}))
	db := n.connect(t)
	_, err := db.Exec(t.Context(), "SET lock_timeout = 1")
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), "SELECT number_changes_anew()")
	require.ErrorContains(t, err, "lock timeout")
	require.NoError(t, tx.Commit(t.Context()))
	_, err = db.Exec(t.Context(), "SELECT number_changes_anew()")
	require.NoError(t, err)
}

// last_seen_at, the most frequent update, is not numbered. A copy has the value from the contact's
// last numbered change.
func seenAgain(t *testing.T, n *tenant) {
	identify := func(traits object) {
		traits["externalUserId"] = "acct-seen"
		n.Make(t, http.MethodPost, "/v1/contacts/identify", traits)
	}
	identify(object{"name": "Ada"})
	c := newCopy(n, "/v1/contacts?sort=updated&externalUserId=acct-seen&"+since)
	c.catchesUp(t, "/v1/contacts?externalUserId=acct-seen")
	identify(object{"name": "Ada"})
	identify(object{"plan": "pro"})
	c.catchesUp(t, "/v1/contacts?externalUserId=acct-seen")
	identify(object{"plan": "pro"})
	after := n.ID(t, "/v1/contacts", object{})
	for all := newCopy(n, "/v1/contacts?sort=updated&"+since); all.rows[after] == ""; { // until all earlier transactions have ended
		all.poll(t)
	}
	require.Len(t, c.rows, 1)
	shown := maps.Clone(c.rows)
	c.poll(t) // deletions of other tests may arrive
	require.Equal(t, shown, c.rows)
}

// Changes of related rows also update a row. A copy of the rows updated since a time therefore gets
// it.
func relatedSince(t *testing.T, n *tenant) {
	board := n.Board(t)
	contact := n.ID(t, "/v1/contacts", object{})
	post := func(title string) string { return n.ID(t, board+"/posts", object{"title": title}) }
	target, source, merged := post("target"), post("source"), post("merged")
	comment := func(on string) string {
		return n.ID(t, "/v1/posts/"+on+"/comments", object{"body": object{"text": "x"}, "contactId": contact})
	}
	left, moved := comment(target), comment(source)
	merge := func(into, from string) {
		n.Make(t, http.MethodPost, "/v1/posts/"+into+"/merge", object{"sourceIds": []string{from}})
	}
	merge(source, merged)
	from := func() string { // a time after all changes so far
		now := time.Now().Add(time.Millisecond)
		for !time.Now().After(now) {
		}
		return "?includeDeleted=true&updatedSince=" + url.QueryEscape(now.UTC().Format(time.RFC3339Nano))
	}
	told := func(path, id, what string) {
		c := newCopy(n, path)
		for end := time.Now().Add(20 * time.Second); c.rows[id] == "" && time.Now().Before(end); {
			c.poll(t)
		}
		require.Contains(t, c.rows, id, what)
	}
	since := from()
	merge(target, source)
	told("/v1/posts/"+target+"/comments"+since, moved, "a comment that a merge moved")
	told("/v1/posts"+since, merged, "a post that was merged into a source")
	since = from()
	n.Make(t, http.MethodDelete, "/v1/contacts/"+contact, nil)
	told("/v1/posts/"+target+"/comments"+since, left, "a comment whose contact was deleted")
	since = from()
	n.Make(t, http.MethodDelete, "/v1/posts/"+target, nil)
	told("/v1/posts"+since, merged, "a post whose target was deleted")
}
