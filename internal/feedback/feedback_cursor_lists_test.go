package feedback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/page"
	"earshot/internal/publicid"
)

// A cursor contains a hash of its list's query. A client that reads a list during an upgrade has a
// cursor of the older release. The hash of a plain query must therefore stay the same: a new field
// of a query needs omitempty.
func TestACursorOfAPlainQueryIsOfTheSameListAsInReleasesBefore(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){"": plainLists})
}

func plainLists(t *testing.T, n *tenant) {
	board := n.ID(t, "/v1/boards", object{"name": "b"})
	post := n.ID(t, "/v1/boards/"+board+"/posts", object{"title": "a"})
	n.ID(t, "/v1/boards/"+board+"/posts", object{"title": "b"})
	for range 2 {
		n.ID(t, "/v1/contacts", object{})
		n.ID(t, "/v1/posts/"+post+"/comments", object{"body": object{"text": "x"}})
		n.ID(t, "/v1/boards/"+board+"/changelog", object{"title": "x"})
	}
	text := func(text string, of ...any) json.RawMessage { return json.RawMessage(fmt.Sprintf(text, of...)) }
	on := publicid.Read[publicid.Board](board)
	posts := text(`{"Q":null,"Statuses":null,"TagIDs":null,"ContactID":null,"Sort":"newest"}`)
	contacts := `{"Q":null,"Plans":null,"ExternalUserID":null,"Email":null,"Source":null,"ConsentBasis":null,"UpdatedSince":%s,"Sort":"created"}`
	for path, want := range map[string]string{
		"/v1/boards/" + board + "/posts?":                page.ListOf("posts", on, posts),
		"/v1/posts?sort=newest":                          page.ListOf("allPosts", publicid.Board{}, posts),
		"/v1/contacts?":                                  page.ListOf("contacts", text(contacts, "null")),
		"/v1/contacts?updatedSince=2020-01-01T00:00:00Z": page.ListOf("contacts", text(contacts, `"2020-01-01T00:00:00Z"`)),
		"/v1/posts/" + post + "/comments?":               page.ListOf("comments", publicid.Read[publicid.Post](post)),
		"/v1/boards/" + board + "/changelog?":            page.ListOf("changelog", on),
	} {
		a := n.Do(t, http.MethodGet, path+"&limit=1", nil)
		require.Equal(t, 200, a.Status, "%s", a.Raw)
		name, _ := parts(t, a.Body["nextCursor"].(string))
		require.Equal(t, want, name, path)
	}
}
