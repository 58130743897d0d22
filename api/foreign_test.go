package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

// This file tests every way to another organization in the contract, so that no new operation is
// forgotten. The tests of paths are in routing_test.go.

func TestAnotherOrganization(t *testing.T) {
	t.Parallel()
	together(t, apptest.Start(t, apptest.Options{}), map[string]func(*testing.T, *apptest.App){
		"isn't reached by an id in a body or a query":   foreignMembers,
		"isn't seen in any answer":                      nothingForeign,
		"isn't reached with a cursor of one of its own": foreignCursors,
	})
}

// idsOf maps a member or parameter to the path parameter with the same kind of id.
var idsOf = map[string]string{
	"contactId": "contactId", "tagIds": "tagId", "parentId": "commentId", "postIds": "postId", "sourceIds": "postId",
	"memberId": "memberId", "boardId": "boardId",
}

// ownIDs are ids of the caller, not of the service.
var ownIDs = map[string]bool{"externalUserId": true}

// isID reports whether a name stands for ids of the service. It fails for a name that the walk
// can't use.
func isID(t *testing.T, name string) bool {
	t.Helper()
	if ownIDs[name] || (!strings.HasSuffix(name, "Id") && !strings.HasSuffix(name, "Ids")) {
		return false
	}
	require.Contains(t, idsOf, name, "the walk has no foreign value for it")
	return true
}

func foreignMembers(t *testing.T, app *apptest.App) {
	mine, theirs := newFixture(t, app), newFixture(t, app)
	untouched, unchanged := theirs.Watch(t), mine.Watch(t)
	tried := map[string]bool{}
	missing := func(t *testing.T, o operation, name, path string, body any) {
		t.Helper()
		tried[name] = true
		a := mine.Do(t, o.method, path, body)
		require.Equal(t, http.StatusNotFound, a.Status, "%s: %s", name, a.Raw)
		require.Equal(t, name, a.Details()["field"])
		requireNothingOf(t, theirs, a)
	}
	everyOperation(t, nil, func(t *testing.T, o operation) {
		at := o.filled(t, mine.ids)
		for _, q := range o.Parameters {
			if q.Value.In == "query" && isID(t, q.Value.Name) {
				missing(t, o, q.Value.Name, at+"?"+q.Value.Name+"="+theirs.ids[idsOf[q.Value.Name]], nil)
			}
		}
		if o.RequestBody == nil {
			return
		}
		for name, s := range properties(o.schema()) {
			if isID(t, name) {
				missing(t, o, name, at, o.naming(t, name, s, theirs.ids[idsOf[name]]))
			}
		}
	})
	require.Len(t, tried, len(idsOf), "all that the walk knows")
	untouched(t)
	unchanged(t)
}

// naming returns a body with the required members, and with the id in one member.
func (o operation) naming(t *testing.T, name string, s *openapi3.Schema, id string) object {
	t.Helper()
	body := object{}
	if len(required(o.schema())) > 0 {
		body = o.request(t).(object)
	}
	body[name] = id
	if s.Type.Includes("array") {
		body[name] = []string{id}
	}
	return body
}

func requireNothingOf(t *testing.T, theirs fixture, a apptest.Answer) {
	t.Helper()
	require.NotContains(t, string(a.Raw), theirs.Organization.ID.String())
	for name, id := range theirs.ids {
		require.NotContains(t, string(a.Raw), id, name)
	}
}

// nothingForeign reads everything that a key can read.
func nothingForeign(t *testing.T, app *apptest.App) {
	mine, theirs := newFixture(t, app), newFixture(t, app)
	reads := func(o operation) bool { return o.method == http.MethodGet }
	everyOperation(t, reads, func(t *testing.T, o operation) {
		a := mine.Do(t, o.method, o.filled(t, mine.ids), nil)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		requireNothingOf(t, theirs, a)
	})
}

// foreignCursors requests the rows after the first one of another organization.
func foreignCursors(t *testing.T, app *apptest.App) {
	mine, theirs := newFixture(t, app), newFixture(t, app)
	twice(t, theirs)
	untouched := theirs.Watch(t)
	isList := func(o operation) bool { return o.Parameters.GetByInAndName("query", "cursor") != nil }
	cursors := 0
	everyOperation(t, isList, func(t *testing.T, o operation) {
		first := theirs.Do(t, o.method, o.filled(t, theirs.ids)+"?limit=1", nil)
		require.Equal(t, http.StatusOK, first.Status, "%s", first.Raw)
		cursor, ok := first.Body["nextCursor"].(string)
		if !ok {
			return // the list has only one row
		}
		cursors++
		a := mine.Do(t, o.method, o.filled(t, mine.ids)+"?limit=50&cursor="+url.QueryEscape(cursor), nil)
		requireNothingOf(t, theirs, a)
		if len(o.parameters()) > 0 { // the list belongs to one of their resources
			require.Equal(t, []string{"cursor"}, a.Fields(), "%s", a.Raw)
			return
		}
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	})
	require.Greater(t, cursors, 8)
	untouched(t)
}

// twice makes a second resource for each list, and keeps the ids of the first ones.
func twice(t *testing.T, n fixture) {
	t.Helper()
	board, post := "/v1/boards/"+n.ids["boardId"], "/v1/posts/"+n.ids["postId"]
	n.ID(t, "/v1/boards", object{"name": "More"})
	n.ID(t, board+"/tags", object{"name": "Web"})
	n.ID(t, "/v1/contacts", object{"externalUserId": "u-2"})
	n.ID(t, board+"/posts", object{"title": "Light mode", "contactId": n.ids["contactId"]})
	n.ID(t, board+"/posts", object{"title": "Grey mode", "contactId": n.ids["contactId"]})
	n.ID(t, post+"/comments", object{"body": object{"text": "And me."}})
	n.ID(t, board+"/changelog", object{"title": "Light at last"})
	n.ID(t, "/v1/webhooks", object{"url": "https://hooks.example.com/more", "events": []string{"post.created"}})
	n.Recovered(t, n.ids["webhookId"])
	n.Submission(t, n.ids["boardId"], n.ids["postId"])
}
