package mcp_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/mcp"
)

func TestALongListIsReadPageByPageAndEachAnswerStaysUnderItsSize(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	a := newAgent(t, app, app.Tenant(t).Key)
	board := a.make(t, "manage_board", object{"action": "create_board", "name": "Ideas"})["id"]
	const posts = 40
	for i := range posts {
		// Ten of these texts fill an answer. The one in the middle is larger than an answer.
		text := strings.Repeat("é", 3000)
		if i == 20 {
			text = strings.Repeat("é", 40_000)
		}
		a.make(t, "manage_post", object{
			"action": "create", "board_id": board, "title": fmt.Sprint("Post ", i), "body": object{"text": text},
		})
	}
	seen, pages, arguments := map[string]bool{}, 0, object{"board_id": board, "limit": 100}
	for arguments["cursor"] != nil || pages == 0 {
		got := a.call(t, "search_posts", arguments)
		require.False(t, got.failed, got.raw)
		items := got.body["data"].([]any)
		require.LessOrEqual(t, len(got.raw), mcp.MaxAnswer)
		if got.body["next_cursor"] != nil {
			require.NotEmpty(t, got.body["note"])
		}
		for _, item := range items {
			id := item.(object)["id"].(string)
			require.False(t, seen[id], "twice")
			seen[id] = true
		}
		arguments = maps.Clone(arguments)
		arguments["cursor"] = got.body["next_cursor"]
		pages++
	}
	require.Len(t, seen, posts, "nothing is lost between pages")
	require.Greater(t, pages, 4)
}

func TestAPageSlightlyOverTheSizeLosesRowsAndNoTexts(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	board := n.ID(t, "/v1/boards", object{"name": "Ideas"})
	list := "/v1/boards/" + board + "/posts?limit=100"
	const posts = 100
	write := func(i, length int) {
		n.ID(t, "/v1/boards/"+board+"/posts", object{"title": fmt.Sprintf("Post %03d", i), "body": object{"text": strings.Repeat("x", length)}})
	}
	// The page fits with the API's names, and not with the tools' names.
	write(0, 1)
	row := len(n.Do(t, "GET", list, nil).Raw) - len(`{"data":[],"nextCursor":null}`)
	length := (mcp.MaxAnswer-700)/posts - row
	require.Positive(t, length)
	for i := 1; i < posts; i++ {
		write(i, length)
	}
	require.LessOrEqual(t, len(n.Do(t, "GET", list, nil).Raw), mcp.MaxAnswer)

	page := a.call(t, "search_posts", object{"board_id": board, "sort": "newest", "limit": posts})
	require.LessOrEqual(t, len(page.raw), mcp.MaxAnswer)
	rows := page.body["data"].([]any)
	require.Less(t, len(rows), posts)
	require.Greater(t, len(rows), 90)
	for _, row := range rows {
		require.Len(t, row.(object)["body"].(object)["text"], length)
	}
	require.Equal(t, fmt.Sprintf("Only %d items, because more would be over 64 KiB; next_cursor leads to the rest.", len(rows)), page.body["note"])
	rest := a.call(t, "search_posts", object{"board_id": board, "sort": "newest", "limit": posts, "cursor": page.body["next_cursor"]})
	require.Len(t, rest.body["data"], posts-len(rows))
	require.Nil(t, rest.body["next_cursor"])
}

func TestANoteNamesAFewOfTheValuesThatAreLeftOut(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	a := newAgent(t, app, app.Tenant(t).Key)
	var contacts []any
	for i := range 60 {
		contacts = append(contacts, object{"external_user_id": fmt.Sprint(i), "metadata": object{"a": strings.Repeat("x", 1500)}})
	}
	got := a.call(t, "identify_contact", object{"action": "batch", "contacts": contacts})
	require.False(t, got.failed, got.raw)
	require.LessOrEqual(t, len(got.raw), mcp.MaxAnswer)
	require.Equal(t, 5, strings.Count(got.body["note"].(string), " bytes)"))
	require.Contains(t, got.body["note"], " and 55 more like these")
}

func TestABoardsTagsComeWholeAndInPartsWhereTheyAreMore(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	a := newAgent(t, app, app.Tenant(t).Key)
	board := a.make(t, "manage_board", object{"action": "create_board", "name": "Ideas"})["id"]
	tag := func(i int) answer {
		return a.call(t, "manage_board", object{"action": "create_tag", "board_id": board, "name": fmt.Sprint(i)})
	}
	made := 0
	more := func(until int) {
		for ; made < until; made++ {
			require.False(t, tag(made).failed)
		}
	}
	tags := func(cursor any) ([]any, any) {
		got := a.call(t, "list_boards", object{"action": "tags", "board_id": board, "cursor": cursor})
		require.False(t, got.failed, got.raw)
		require.LessOrEqual(t, len(got.raw), mcp.MaxAnswer)
		return got.body["data"].([]any), got.body["next_cursor"]
	}
	more(60)
	all, next := tags(nil)
	require.Len(t, all, 60)
	require.Nil(t, next)
	more(500)
	seen := 0
	for all, next = tags(nil); next != nil; all, next = tags(next) {
		seen += len(all)
	}
	require.Equal(t, 500, seen+len(all))
	refused := tag(made)
	require.Equal(t, "ERR_CONFLICT", refused.code())
	require.Contains(t, refused.raw, `"reason":"tag_limit"`)
}

func TestASmallListIsAnsweredAtOnceAndSaysNothingOfSizes(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	a := newAgent(t, app, app.Tenant(t).Key)
	for i := range 3 {
		a.make(t, "create_contact", object{"external_user_id": fmt.Sprint(i)})
	}
	first := a.call(t, "list_contacts", object{"limit": 2})
	require.Len(t, first.body["data"], 2)
	require.NotContains(t, first.body, "note")
	rest := a.call(t, "list_contacts", object{"limit": 2, "cursor": first.body["next_cursor"]})
	require.Len(t, rest.body["data"], 1)
	require.Nil(t, rest.body["next_cursor"])
}

// The budget is one token a minute. A second request for less would be refused if it took another.
func TestAskingAgainForLessCostsNothing(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	for i := range 4 {
		n.Make(t, "POST", "/v1/contacts", object{"externalUserId": fmt.Sprint(i), "metadata": object{"a": strings.Repeat("x", 30_000)}})
	}
	own := n.NewKeyOf(t, object{"name": "Assistant", "scope": "read"})
	id, err := publicid.Parse[publicid.APIKey](own["id"].(string))
	require.NoError(t, err)
	app.Store.Client().APIKey.UpdateOneID(id).SetRateLimit(1).ExecX(n.Context(t.Context()))
	got := post(t, n, calling("list_contacts", object{}), "Authorization", "Bearer "+own["key"].(string))
	require.Contains(t, string(got.Raw), "Only 2 items")
	require.Equal(t, "0", got.Header.Get("X-RateLimit-Remaining"))
}

// Each page here takes some 3 MiB of the memory for large pages, which is 256 MiB. The answer to a
// batch holds the answers of all its calls, so all of them take memory together.
func TestThePagesOfABatchKeepTheirMemoryUntilItIsAnswered(t *testing.T) {
	tier.Slow(t, "moves many megabytes")
	t.Parallel()
	app := apptest.Start(t, apptest.Options{Alone: true}) // other tests use the same memory
	n := app.Tenant(t)
	board := n.ID(t, "/v1/boards", object{"name": "Ideas"})
	n.ID(t, "/v1/boards/"+board+"/posts", object{
		"title": "Large", "body": object{"text": "x", "json": object{"x": strings.Repeat("a", 255<<10)}},
	})
	page := calling("search_posts", object{"board_id": board, "limit": 1})
	const fit, calls = 35, 60
	refused := limited(t, postBatch(t, app, n, calls, page))
	require.Positive(t, refused)
	require.Less(t, refused, calls-fit)
	require.Zero(t, limited(t, postBatch(t, app, n, fit, page)), "the first answer was written")
}
