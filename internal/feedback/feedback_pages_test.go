package feedback_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
)

// list is a list and a function that adds an item to it.
type list struct {
	path string
	make func(i int) string
	// If newestFirst is false, the list is oldest first.
	newestFirst bool
	standard    int
	// whole is true if the list returns all items when the request asks for no page.
	whole bool
}

func TestAListIsWalkedFromEndToEnd(t *testing.T) {
	t.Parallel()
	togetherOn(t, roomy.Start(t), map[string]func(*testing.T, *tenant){
		"of boards": func(t *testing.T, n *tenant) {
			walks(t, n, list{"/v1/boards", func(i int) string {
				return n.ID(t, "/v1/boards", object{"name": fmt.Sprint(i)})
			}, false, 50, false})
		},
		"of tags": func(t *testing.T, n *tenant) {
			path := n.Board(t) + "/tags"
			walks(t, n, list{path, func(i int) string { return n.ID(t, path, object{"name": fmt.Sprint(i)}) }, false, 25, true})
		},
		"of webhooks": func(t *testing.T, n *tenant) {
			walks(t, n, list{"/v1/webhooks", func(int) string { return n.Listen(t) }, false, 25, true})
		},
		"of deliveries": func(t *testing.T, n *tenant) {
			path := "/v1/webhooks/" + n.Listen(t, event.PostCreated) + "/deliveries"
			board := n.Board(t)
			walks(t, n, list{path, func(int) string {
				n.ID(t, board+"/posts", object{"title": "x"})
				return n.Walk(t, path, "200", func() {})[0]
			}, true, 50, false})
		},
		"of recoveries": func(t *testing.T, n *tenant) {
			hook := n.Listen(t)
			walks(t, n, list{"/v1/webhooks/" + hook + "/recoveries", func(int) string { return n.Recovered(t, hook) }, true, 25, false})
		},
		"of posts": func(t *testing.T, n *tenant) {
			path := n.Board(t) + "/posts"
			walks(t, n, list{path, func(int) string { return n.ID(t, path, object{"title": "x"}) }, true, 25, false})
		},
		"of a contact's posts": func(t *testing.T, n *tenant) {
			contact, boards := n.ID(t, "/v1/contacts", object{}), []string{n.Board(t), n.Board(t)}
			walks(t, n, list{"/v1/contacts/" + contact + "/posts", func(i int) string {
				return n.ID(t, boards[i%2]+"/posts", object{"title": "x", "contactId": contact})
			}, true, 25, false})
		},
		"of votes": func(t *testing.T, n *tenant) {
			path := n.Post(t) + "/votes"
			walks(t, n, list{path, func(int) string { return n.members(t, 1)[0].ID(t, path, nil) }, true, 25, false})
		},
		"of comments": func(t *testing.T, n *tenant) {
			path := n.Post(t) + "/comments"
			walks(t, n, list{path, func(int) string { return n.ID(t, path, object{"body": object{"text": "x"}}) }, false, 25, false})
		},
		"of the changelog": func(t *testing.T, n *tenant) {
			path := n.Board(t) + "/changelog"
			walks(t, n, list{path, func(int) string { return n.ID(t, path, object{"title": "x"}) }, true, 25, false})
		},
		"of contacts": func(t *testing.T, n *tenant) {
			walks(t, n, list{"/v1/contacts", func(int) string { return n.ID(t, "/v1/contacts", object{}) }, true, 25, false})
		},
		"of members": func(t *testing.T, n *tenant) {
			made := n.Walk(t, "/v1/members", "100", nil)
			for range 30 {
				made = append(made, n.ID(t, "/v1/members", object{"email": unique() + "@example.com", "name": "x"}))
			}
			for _, limit := range []string{"1", "7", "50"} {
				require.Equal(t, made, n.Walk(t, "/v1/members", limit, func() {}), "each once and in order, by %s", limit)
			}
			require.Len(t, n.Do(t, http.MethodGet, "/v1/members", nil).Body["data"], 25, "the usual page")
		},
		"of API keys": func(t *testing.T, n *tenant) {
			made := n.Walk(t, "/v1/api-keys", "100", nil)
			for range 30 {
				made = append(made, n.keyOfAnother(t))
			}
			for _, limit := range []string{"1", "7", "50"} {
				require.Equal(t, made, n.Walk(t, "/v1/api-keys", limit, func() {}), "each once and in order, by %s", limit)
			}
			require.Len(t, n.Do(t, http.MethodGet, "/v1/api-keys", nil).Body["data"], 25, "the usual page")
		},
	})
}

func walks(t *testing.T, n *tenant, l list) {
	t.Helper()
	require.Empty(t, n.Walk(t, l.path, "1", nil))
	made := make([]string, l.standard+5)
	for i := range made {
		made[i] = l.make(i)
	}
	want := slices.Clone(made)
	if l.newestFirst {
		slices.Reverse(want)
	}
	for _, limit := range []string{"1", "7", "50"} {
		require.Equal(t, want, n.Walk(t, l.path, limit, func() {}), "each once and in order, by %s", limit)
	}
	first := n.Do(t, http.MethodGet, l.path, nil)
	if l.whole {
		require.Len(t, first.Body["data"], len(made), "all of it")
		require.Nil(t, first.Body["nextCursor"])
		start := n.Do(t, http.MethodGet, l.path+"?limit=1", nil).Body["nextCursor"].(string)
		require.Len(t, n.Do(t, http.MethodGet, l.path+"?cursor="+start, nil).Body["data"], l.standard, "the usual page after a cursor")
		first = n.Do(t, http.MethodGet, fmt.Sprint(l.path, "?limit=", l.standard), nil)
	}
	require.Len(t, first.Body["data"], l.standard, "the usual page")
	exact := n.Do(t, http.MethodGet, l.path+"?limit=50&cursor="+first.Body["nextCursor"].(string), nil)
	require.Len(t, exact.Body["data"], 5)
	require.Nil(t, exact.Body["nextCursor"])
	growing(t, n, l, want)
}

// growing reads a list while items are added. It checks that the existing items are read exactly
// once.
func growing(t *testing.T, n *tenant, l list, want []string) {
	t.Helper()
	i := len(want)
	seen := n.Walk(t, l.path, "20", func() {
		if i < len(want)+5 {
			l.make(i)
			i++
		}
	})
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(seen))), len(seen), "none comes twice")
	old := slices.DeleteFunc(seen, func(id string) bool { return !slices.Contains(want, id) })
	require.Equal(t, want, old)
}

func TestACursorBelongsToItsList(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"and is refused by another": func(t *testing.T, n *tenant) {
			board := n.Board(t)
			n.Board(t)
			n.Listen(t)
			n.Listen(t)
			boards := n.Do(t, http.MethodGet, "/v1/boards?limit=1", nil).Body["nextCursor"].(string)
			hooks := n.Do(t, http.MethodGet, "/v1/webhooks?limit=1", nil).Body["nextCursor"].(string)
			for path, cursor := range map[string]string{"/v1/boards": hooks, "/v1/webhooks": boards, board + "/tags": boards} {
				a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, path+"?cursor="+cursor, nil)
				require.Equal(t, []string{"cursor"}, a.Fields(), path)
			}
		},
		"and is refused by another order of it": func(t *testing.T, n *tenant) {
			board := n.Board(t)
			for range 2 {
				n.ID(t, board+"/posts", object{"title": "x"})
				n.ID(t, "/v1/contacts", object{"name": "x"})
			}
			n.cursorsDiffer(t, board+"/posts?limit=1&q=x&sort=", "newest", "votes", "active", "relevance")
			n.cursorsDiffer(t, "/v1/contacts?limit=1&sort=", "created", "last_seen", "mrr")
		},
		"and is refused by that of another parent": cursorsOfParents,
		"and is refused by that of other filters":  cursorsOfFilters,
		"and takes another limit": func(t *testing.T, n *tenant) {
			board := n.Board(t)
			for range 3 {
				n.ID(t, board+"/posts", object{"title": "x"})
			}
			list := board + "/posts?q=x&status=open"
			cursor := n.Do(t, http.MethodGet, list+"&limit=1", nil).Body["nextCursor"].(string)
			for _, limit := range []string{"", "&limit=2", "&limit=100"} {
				require.Len(t, n.Do(t, http.MethodGet, list+"&cursor="+cursor+limit, nil).Body["data"], 2)
			}
		},
		"and goes on after its item was deleted": func(t *testing.T, n *tenant) {
			tags := n.Board(t) + "/tags"
			a, b := n.ID(t, tags, object{"name": "a"}), n.ID(t, tags, object{"name": "b"})
			cursor := n.Do(t, http.MethodGet, tags+"?limit=1", nil).Body["nextCursor"].(string)
			n.Make(t, http.MethodDelete, tags+"/"+a, nil)
			rest := n.Do(t, http.MethodGet, tags+"?cursor="+cursor, nil).Body["data"].([]any)
			require.Equal(t, b, rest[0].(object)["id"])
		},
		"and shows nothing of another organization": func(t *testing.T, n *tenant) {
			stranger := n.on(t, "business")
			n.Board(t)
			n.Board(t)
			stranger.Board(t)
			cursor := n.Do(t, http.MethodGet, "/v1/boards?limit=1", nil).Body["nextCursor"].(string)
			for _, item := range stranger.Do(t, http.MethodGet, "/v1/boards?cursor="+cursor, nil).Body["data"].([]any) {
				require.Equal(t, stranger.Organization.ID.String(), item.(object)["organizationId"])
			}
		},
	})
}

func cursorsOfParents(t *testing.T, n *tenant) {
	for _, list := range []struct {
		make   func() string
		member string
	}{
		{func() string { return n.Board(t) + "/tags" }, "name"},
		{func() string { return n.Board(t) + "/posts" }, "title"},
		{func() string { return n.Board(t) + "/changelog" }, "title"},
		{func() string { return n.Post(t) + "/comments" }, "body"},
	} {
		of, other := list.make(), list.make()
		for i := range 4 {
			value := any(fmt.Sprint(i))
			if list.member == "body" {
				value = object{"text": "x"}
			}
			n.ID(t, []string{of, other}[i%2], object{list.member: value})
		}
		n.cursorsDiffer(t, "", of+"?limit=1", other+"?limit=1")
	}
	hooks := []string{"/v1/webhooks/" + n.Listen(t) + "/", "/v1/webhooks/" + n.Listen(t) + "/"}
	n.Post(t)
	n.Post(t)
	n.cursorsDiffer(t, "", hooks[0]+"deliveries?limit=1", hooks[1]+"deliveries?limit=1")
}

func cursorsOfFilters(t *testing.T, n *tenant) {
	board, contact := n.Board(t), n.ID(t, "/v1/contacts", object{"plan": "a"})
	tag := n.ID(t, board+"/tags", object{"name": "x"})
	n.ID(t, "/v1/contacts", object{"plan": "a"})
	hook := "/v1/webhooks/" + n.Listen(t)
	for range 2 {
		n.ID(t, board+"/posts", object{"title": "x", "contactId": contact, "tagIds": []string{tag}})
	}
	n.cursorsDiffer(t, board+"/posts?limit=1&sort=newest", "", "&status=open", "&status=open,planned", "&tagIds="+tag,
		"&contactId="+contact, "&q=x")
	n.cursorsDiffer(t, "/v1/contacts?limit=1", "", "&plan=a", "&plan=a,b", "&source=admin", "&updatedSince=2026-03-12T10:41:07Z")
	n.cursorsDiffer(t, hook+"/deliveries?limit=1", "", "&eventType=post.created", "&since=2026-03-12T10:41:07Z")
}

// cursorsDiffer sends the cursor of each list to all other lists.
func (n *tenant) cursorsDiffer(t *testing.T, path string, orders ...string) {
	t.Helper()
	for _, from := range orders {
		cursor, ok := n.Do(t, http.MethodGet, path+from, nil).Body["nextCursor"].(string)
		require.True(t, ok, from)
		for _, to := range orders {
			next := path + to + "&cursor=" + cursor
			if from == to {
				require.Equal(t, http.StatusOK, n.Do(t, http.MethodGet, next, nil).Status)
				continue
			}
			require.Equal(t, []string{"cursor"}, n.Refused(t, "ERR_VALIDATION", http.MethodGet, next, nil).Fields(), "%s after %s", to, from)
		}
	}
}
