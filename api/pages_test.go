package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

const (
	// Rows of about 260 KB, or of 50 KB that become 300 KB in an answer. Each list has about 10 MB.
	largeRows = 36
	// The bytes of a page beside the texts of its rows.
	besideTexts = 256 << 10
)

func TestAPageOfLargeRowsEndsEarlyAndTheNextOneGoesOn(t *testing.T) {
	tier.Slow(t, "writes and reads many megabytes")
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	for name, text := range map[string]object{
		"that are large in the database":   {"text": "x", "json": object{"x": strings.Repeat("a", 255<<10)}},
		"that are large in an answer only": {"text": strings.Repeat("<", 50_000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newFixture(t, app)
			board := "/v1/boards/" + n.ids["boardId"]
			for range largeRows {
				n.ID(t, board+"/posts", object{"title": "Large", "body": text, "contactId": n.ids["contactId"]})
				n.ID(t, "/v1/posts/"+n.ids["postId"]+"/comments", object{"body": text})
				n.ID(t, board+"/changelog", object{"title": "Large", "body": text})
			}
			for path, others := range map[string]int{
				board + "/posts": 1, board + "/posts?sort=votes": 1, board + "/posts?sort=active": 1, board + "/posts?q=large": 0,
				"/v1/contacts/" + n.ids["contactId"] + "/posts": 0, "/v1/posts/" + n.ids["postId"] + "/comments": 1,
				board + "/changelog": 1,
			} {
				requireWalk(t, n, path, largeRows+others)
			}
		})
	}
}

func TestAPageOfContactsWithMuchMetadataEndsEarly(t *testing.T) {
	tier.Slow(t, "writes and reads many megabytes")
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	for i := range largeRows {
		n.ID(t, "/v1/contacts", object{
			"externalUserId": strconv.Itoa(i), "name": "Large", "metadata": object{"x": strings.Repeat("a", 255<<10)},
		})
	}
	for _, path := range []string{"", "?sort=last_seen", "?sort=mrr", "?q=large"} {
		requireWalk(t, fixture{Tenant: n}, "/v1/contacts"+path, largeRows)
	}
}

// requireWalk reads a whole list. It requires each row once, and no page above the maximum size.
func requireWalk(t *testing.T, n fixture, path string, rows int) {
	t.Helper()
	at, err := url.Parse(path)
	require.NoError(t, err)
	query := at.Query()
	query.Set("limit", "100")
	var seen []string
	pages := 0
	for next := any(""); next != nil; pages++ {
		if pages > 0 {
			query.Set("cursor", next.(string))
		}
		a := n.Do(t, http.MethodGet, at.Path+"?"+query.Encode(), nil)
		require.Equal(t, http.StatusOK, a.Status, path)
		require.LessOrEqual(t, len(a.Raw), 8<<20+besideTexts, path)
		for _, row := range a.Body["data"].([]any) {
			seen = append(seen, row.(object)["id"].(string))
		}
		next = a.Body["nextCursor"]
	}
	require.Greater(t, pages, 1, path)
	require.Len(t, seen, rows, path)
	slices.Sort(seen)
	require.Len(t, slices.Compact(seen), rows, path)
}
