package feedback_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestAListOfPosts(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is walked from end to end while it grows":                        postsWalked,
		"has the newest first unless told otherwise":                      newestPosts,
		"sorted by votes has most votes first, the newest of as many":     mostVotedPosts,
		"sorted by activity has the latest vote, comment or change first": mostActivePosts,
		"of each sort has every post once on pages of any size":           postPages,
		"shows posts as they are read, with their tags":                   postsAsRead,
		"has the posts in any of the states":                              postsByStatus,
		"has the posts with any of the tags, each once":                   postsByTag,
		"has the posts of a contact":                                      postsByContact,
		"has the posts that meet all filters, in the wanted order":        postsByEverything,
		"is of one board": postsOfOneBoard,
		"refuses a filter that can't be right, by its name":                 badPostFilters,
		"refuses all that is wrong at once":                                 badPostFiltersTogether,
		"answers 404 for a tag or contact that the organization hasn't got": foreignPostFilters,
		"goes on behind a post that was deleted or moved meanwhile":         cursorsOutlivePosts,
		"refuses a cursor of another order":                                 foreignPostCursors,
		"refuses a cursor that was tampered with":                           forgedPostCursors,
	})
}

// shown returns a field of each item of a list's first page.
func (n *tenant) shown(t *testing.T, path, member string) []string {
	t.Helper()
	found, _ := n.pageOf(t, path, member)
	return found
}

func (n *tenant) pageOf(t *testing.T, path, member string) (found []string, next string) {
	t.Helper()
	a := n.Do(t, http.MethodGet, path, nil)
	require.Equal(t, http.StatusOK, a.Status, "%s: %s", path, a.Raw)
	for _, item := range a.Body["data"].([]any) {
		found = append(found, item.(object)[member].(string))
	}
	next, _ = a.Body["nextCursor"].(string)
	return found, next
}

// paged reads a whole list and returns a field of each item. All pages except the last must be
// full. The path has a query.
func (n *tenant) paged(t *testing.T, path string, limit int, member string) []string {
	t.Helper()
	var all []string
	for cursor := ""; ; {
		found, next := n.pageOf(t, fmt.Sprint(path, "&limit=", limit, cursor), member)
		all = append(all, found...)
		if next == "" {
			return all
		}
		require.Len(t, found, limit)
		cursor = "&cursor=" + url.QueryEscape(next)
	}
}

// say adds a post with a title and a text to a board, and returns its path.
func (n *tenant) say(t *testing.T, board, title, text string) string {
	t.Helper()
	return "/v1/posts/" + n.ID(t, board+"/posts", object{"title": title, "body": object{"text": text}})
}

// votedBy adds this number of votes from the public flow.
func (n *tenant) votedBy(t *testing.T, post string, voters int) {
	t.Helper()
	for i := range voters {
		n.anonymousVote(t, post, fmt.Sprint("voter ", i))
	}
}

func postsWalked(t *testing.T, n *tenant) {
	path := n.Board(t) + "/posts"
	walks(t, n, list{path, func(i int) string { return n.ID(t, path, object{"title": fmt.Sprint(i)}) }, true, 25, false})
}

// numbered makes posts with the titles 0, 1, 2, … on a board, in this order.
func (n *tenant) numbered(t *testing.T, count int) (board string, posts []string) {
	t.Helper()
	board = n.Board(t)
	for i := range count {
		posts = append(posts, n.say(t, board, fmt.Sprint(i), "word"))
	}
	return board, posts
}

func newestPosts(t *testing.T, n *tenant) {
	board, posts := n.numbered(t, 4)
	n.ID(t, posts[1]+"/votes", nil) // does not change these orders
	for _, path := range []string{"/posts", "/posts?sort=newest"} {
		require.Equal(t, []string{"3", "2", "1", "0"}, n.shown(t, board+path, "title"), path)
	}
}

func mostVotedPosts(t *testing.T, n *tenant) {
	board, posts := n.numbered(t, 7)
	for i, voters := range []int{2, 0, 1, 3, 0, 2, 1} {
		n.votedBy(t, posts[i], voters)
	}
	require.Equal(t, []string{"3", "5", "0", "6", "2", "4", "1"}, n.shown(t, board+"/posts?sort=votes", "title"))
	n.ID(t, posts[1]+"/votes", nil)
	n.ID(t, posts[0]+"/votes", nil)
	require.Equal(t, []string{"3", "0", "5", "6", "2", "1", "4"}, n.shown(t, board+"/posts?sort=votes", "title"))
}

func mostActivePosts(t *testing.T, n *tenant) {
	board, posts := n.numbered(t, 6)
	// All posts get the same time, which only the store can set.
	n.App.Store.Client().Post.Update().SetLastActivityAt(n.Owner.CreatedAt).ExecX(n.Context(t.Context()))
	active := func() []string { return n.shown(t, board+"/posts?sort=active", "title") }
	require.Equal(t, []string{"5", "4", "3", "2", "1", "0"}, active(), "the newest of those at the same moment")
	comment := n.Comment(t, posts[1], "")
	n.ID(t, posts[4]+"/votes", nil)
	n.Patch(t, posts[0], object{"status": "planned"})
	require.Equal(t, []string{"0", "4", "1", "5", "3", "2"}, active())
	n.Make(t, http.MethodDelete, posts[4]+"/votes", nil)
	n.Make(t, http.MethodDelete, "/v1/comments/"+comment, nil)
	n.Patch(t, posts[3], object{"title": "3"})
	require.Equal(t, []string{"0", "4", "1", "5", "3", "2"}, active(), "what is taken back is no activity, nor is no change")
	n.Comment(t, posts[2], "")
	require.Equal(t, []string{"2", "0", "4", "1", "5", "3"}, active())
}

func postPages(t *testing.T, n *tenant) {
	board, posts := n.numbered(t, 7)
	for i, voters := range []int{2, 0, 1, 2, 0, 2, 1} {
		n.votedBy(t, posts[i], voters)
	}
	for _, i := range []int{3, 0, 6} { // titles that match without the text
		n.Patch(t, posts[i], object{"title": fmt.Sprint(i, " word")})
	}
	at := time.Now().UTC().Truncate(time.Microsecond)
	n.App.Store.Client().Post.Update().SetLastActivityAt(at).ExecX(n.Context(t.Context()))
	n.Comment(t, posts[5], "")
	n.Comment(t, posts[1], "")
	for query, want := range map[string]string{
		"sort=newest":                 "6543210",
		"sort=votes":                  "5306241",
		"sort=active":                 "1564320",
		"q=word":                      "630" + "5421",
		"q=word&sort=relevance":       "630" + "5421",
		"q=word&sort=newest":          "6543210",
		"q=word&sort=votes":           "5306241",
		"q=word&sort=active":          "1564320",
		"q=word&status=open,planned":  "630" + "5421",
		"status=open&sort=active":     "1564320",
		"q=word -missing&sort=newest": "6543210",
	} {
		path := board + "/posts?" + strings.ReplaceAll(query, " ", "+")
		for limit := 1; limit <= 8; limit++ {
			var got strings.Builder
			for _, title := range n.paged(t, path, limit, "title") {
				got.WriteByte(title[0])
			}
			require.Equal(t, want, got.String(), "%s by %d", query, limit)
		}
	}
}

func postsAsRead(t *testing.T, n *tenant) {
	board := n.Board(t)
	contact := n.Identify(t, object{"externalUserId": "u-1"})["id"]
	var tags []any
	for _, name := range []string{"c", "a", "b"} {
		tags = append(tags, n.ID(t, board+"/tags", object{"name": name}))
	}
	var want []any
	for _, carried := range [][]any{{}, {tags[1]}, {tags[2], tags[0]}, tags} {
		post := "/v1/posts/" + n.ID(t, board+"/posts", object{
			"title": "Dark mode", "body": object{"json": object{"type": "doc"}, "text": "Please."},
			"contactId": contact, "tagIds": carried,
		})
		n.ID(t, post+"/votes", nil)
		want = append([]any{n.Get(t, post)}, want...)
	}
	for _, query := range []string{"", "?q=dark", "?q=please", "?sort=votes", "?sort=active", "?tagIds=" + fmt.Sprint(tags[0], ",", tags[1])} {
		got := n.Do(t, http.MethodGet, board+"/posts"+query, nil).Body["data"].([]any)
		require.Equal(t, want[:len(got)], got, query)
		require.GreaterOrEqual(t, len(got), 3, query)
	}
}

func postsByStatus(t *testing.T, n *tenant) {
	board, posts := n.numbered(t, 7)
	for i, status := range []string{"open", "under_review", "planned", "in_progress", "shipped", "declined"} {
		n.Patch(t, posts[i], object{"status": status})
	}
	n.merge(t, posts[0], posts[6])
	for status, want := range map[string][]string{
		"open":                   {"0"},
		"under_review":           {"1"},
		"duplicate":              {"6"},
		"open,planned":           {"2", "0"},
		"planned,open":           {"2", "0"},
		"shipped,shipped":        {"4"},
		"declined%2Cin_progress": {"5", "3"},
		"open,under_review,planned,in_progress,shipped,declined,duplicate": {"6", "5", "4", "3", "2", "1", "0"},
	} {
		require.Equal(t, want, n.shown(t, board+"/posts?status="+status, "title"), status)
	}
	n.Patch(t, posts[0], object{"status": "shipped"})
	require.Empty(t, n.shown(t, board+"/posts?status=open", "title"))
}

func postsByTag(t *testing.T, n *tenant) {
	board := n.Board(t)
	a, b := n.ID(t, board+"/tags", object{"name": "a"}), n.ID(t, board+"/tags", object{"name": "b"})
	unused := n.ID(t, board+"/tags", object{"name": "unused"})
	elsewhere := n.ID(t, n.Board(t)+"/tags", object{"name": "a"})
	for title, tags := range map[string][]string{"none": {}, "a": {a}, "b": {b}, "both": {a, b}} {
		n.ID(t, board+"/posts", object{"title": title, "tagIds": tags})
	}
	for filter, want := range map[string][]string{
		a: {"a", "both"}, b: {"b", "both"}, a + "," + b: {"a", "b", "both"}, b + "," + a + "," + b: {"a", "b", "both"},
		unused: nil, unused + "," + a: {"a", "both"}, elsewhere: nil, elsewhere + "," + b: {"b", "both"},
	} {
		got := n.shown(t, board+"/posts?tagIds="+filter, "title")
		slices.Sort(got)
		require.Equal(t, want, got, filter)
	}
	require.Equal(t, n.paged(t, board+"/posts?tagIds="+a+","+b, 100, "title"), n.paged(t, board+"/posts?tagIds="+a+","+b, 1, "title"),
		"a post with both tags fills no two places of a page")
}

func postsByContact(t *testing.T, n *tenant) {
	board := n.Board(t)
	ada, bob := n.Identify(t, object{"externalUserId": "ada"})["id"].(string), n.Identify(t, object{"externalUserId": "bob"})["id"].(string)
	for title, contact := range map[string]any{"ada": ada, "bob": bob, "nobody": nil} {
		n.ID(t, board+"/posts", object{"title": title, "contactId": contact})
	}
	require.Equal(t, []string{"ada"}, n.shown(t, board+"/posts?contactId="+ada, "title"))
	require.Equal(t, []string{"bob"}, n.shown(t, board+"/posts?contactId="+bob, "title"))
	require.Empty(t, n.shown(t, n.Board(t)+"/posts?contactId="+ada, "title"))
}

// All posts except two fail one of the filters.
func postsByEverything(t *testing.T, n *tenant) {
	board := n.Board(t)
	tag, contact := n.ID(t, board+"/tags", object{"name": "a"}), n.Identify(t, object{"externalUserId": "ada"})["id"].(string)
	full := object{"title": "in title", "body": object{"text": "dark"}, "tagIds": []string{tag}, "contactId": contact, "status": "planned"}
	for i, lacks := range []object{
		{"title": "first dark"}, {"title": "no word", "body": object{}}, {"title": "no dark tag", "tagIds": []string{}},
		{"title": "second"}, {"title": "no dark contact", "contactId": nil}, {"title": "dark but open", "status": "open"},
	} {
		post := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x"})
		n.Patch(t, post, full)
		n.Patch(t, post, lacks)
		n.votedBy(t, post, 6-i)
	}
	filters := board + "/posts?status=shipped,planned&tagIds=" + tag + "&contactId=" + contact + "&q=dark"
	for sort, want := range map[string][]string{
		"": {"first dark", "second"}, "&sort=relevance": {"first dark", "second"},
		"&sort=newest": {"second", "first dark"}, "&sort=votes": {"first dark", "second"}, "&sort=active": {"second", "first dark"},
	} {
		require.Equal(t, want, n.paged(t, filters+sort, 1, "title"), sort)
	}
}

func postsOfOneBoard(t *testing.T, n *tenant) {
	board, other := n.Board(t), n.Board(t)
	n.say(t, board, "red", "word")
	n.say(t, other, "blue", "word")
	stranger := n.on(t, "business")
	stranger.say(t, stranger.Board(t), "green", "word")
	for _, query := range []string{"", "?q=word", "?q=red+or+blue+or+green", "?sort=votes", "?sort=active", "?status=open"} {
		require.Equal(t, []string{"red"}, n.shown(t, board+"/posts"+query, "title"), query)
		require.Equal(t, []string{"blue"}, n.shown(t, other+"/posts"+query, "title"), query)
		stranger.Refused(t, "ERR_NOT_FOUND", http.MethodGet, board+"/posts"+query, nil)
	}
}

func badPostFilters(t *testing.T, n *tenant) {
	board := n.Board(t)
	tag := n.ID(t, board+"/tags", object{"name": "a"})
	for query, want := range map[string][]string{
		"status=done":                                    {"status[0] enum"},
		"status=open,done,shipped,Planned":               {"status[1] enum", "status[3] enum"},
		"status=open,+planned":                           {"status[1] enum"},
		"status=open,":                                   {"status[1] enum"},
		"status=open,open,open,open,open,open,open,open": {"status maxItems"},
		"tagIds=" + tag + ",":                            {"tagIds[1] minLength"},
		"contactId=":                                     {"contactId minLength"},
		"sort=best":                                      {"sort enum"},
		"sort=Newest":                                    {"sort enum"},
		"sort=":                                          {"sort enum"},
		"sort=relevance":                                 {"sort relevance"},
		"limit=0":                                        {"limit minimum"},
		"limit=-1":                                       {"limit minimum"},
		"limit=101":                                      {"limit maximum"},
		"limit=ten":                                      {"limit type"},
		"limit=":                                         {"limit type"},
		"limit=99999999999999999999":                     {"limit maximum"},
		"cursor=":                                        {"cursor minLength"},
		"cursor=%00":                                     {"cursor cursor"},
		"cursor=" + tag:                                  {"cursor cursor"},
		"tagIds=" + strings.Repeat(tag+",", 50) + tag: {"tagIds maxItems"},
	} {
		a := n.Do(t, http.MethodGet, board+"/posts?"+query, nil)
		require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s: %s", query, a.Raw)
		require.Subset(t, apptest.FieldRules(a), want, query)
		require.Equal(t, distinctFields(want), distinctFields(apptest.FieldRules(a)), query)
	}
	for query, field := range map[string]string{
		"tagIds=a": "tagIds", "tagIds=" + tag + "," + tag[4:]: "tagIds", "tagIds=" + tag + strings.ToUpper(tag): "tagIds",
		"contactId=" + tag: "contactId", "contactId=x": "contactId",
	} {
		a := n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, board+"/posts?"+query, nil)
		require.Equal(t, field, a.Details()["field"], query)
	}
	for _, query := range []string{"status=", "tagIds=", "status=open&status=planned"} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, board+"/posts?"+query, nil)
		require.Equal(t, query[:6], a.Fields()[0][:6], "%s: %s", query, a.Raw)
	}
	n.shown(t, board+"/posts?status=open,under_review,planned,in_progress,shipped,declined,duplicate", "id")
	n.shown(t, board+"/posts?limit=100&tagIds="+strings.Repeat(tag+",", 49)+tag, "id")
}

// distinctFields returns the fields of "field rule" pairs, without the rules.
func distinctFields(pairs []string) []string {
	var fields []string
	for _, pair := range pairs {
		fields = append(fields, strings.Fields(pair)[0])
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

func badPostFiltersTogether(t *testing.T, n *tenant) {
	a := n.Refused(t, "ERR_VALIDATION", http.MethodGet,
		n.Board(t)+"/posts?q=&status=open,done&tagIds=x,&contactId=&limit=0&cursor=x&sort=votes", nil)
	require.ElementsMatch(t, []string{"q", "status[1]", "tagIds[1]", "contactId", "limit"}, a.Fields())
}

func foreignPostFilters(t *testing.T, n *tenant) {
	board, stranger := n.Board(t), n.on(t, "business")
	mine := n.ID(t, board+"/tags", object{"name": "a"})
	tag := stranger.ID(t, stranger.Board(t)+"/tags", object{"name": "a"})
	contact := stranger.Identify(t, object{"externalUserId": "ada"})["id"].(string)
	for query, field := range map[string]string{
		"tagIds=" + tag: "tagIds", "tagIds=" + mine + "," + tag: "tagIds", "contactId=" + contact: "contactId",
		"q=dark&contactId=" + contact: "contactId", "tagIds=" + mine + "&contactId=" + contact: "contactId",
	} {
		a := n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, board+"/posts?"+query, nil)
		require.Equal(t, http.StatusNotFound, a.Status)
		require.Equal(t, field, a.Details()["field"], query)
	}
	n.Make(t, http.MethodDelete, board+"/tags/"+mine, nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, board+"/posts?tagIds="+mine, nil)
}

// A cursor is a place in the order. Its post need not exist.
func cursorsOutlivePosts(t *testing.T, n *tenant) {
	for _, sort := range []string{"relevance", "newest", "votes", "active", "revenue&currency=EUR"} {
		board, posts := n.numbered(t, 4)
		for i, post := range posts {
			n.votedBy(t, post, i)
		}
		path := board + "/posts?q=word&limit=2&sort=" + sort
		first, cursor := n.pageOf(t, path, "title")
		require.Equal(t, []string{"3", "2"}, first, sort)
		n.Make(t, http.MethodDelete, posts[2], nil)
		require.Equal(t, []string{"1", "0"}, n.shown(t, path+"&cursor="+cursor, "title"), sort)
		n.ID(t, posts[3]+"/votes", nil) // moves the post up in every order
		require.Equal(t, []string{"1", "0"}, n.shown(t, path+"&cursor="+cursor, "title"), sort)
	}
}

func foreignPostCursors(t *testing.T, n *tenant) {
	board, _ := n.numbered(t, 3)
	sorts := []string{"relevance", "newest", "votes", "active", "revenue&currency=EUR", "revenue&currency=USD"}
	cursors := map[string]string{}
	for _, sort := range sorts {
		_, cursors[sort] = n.pageOf(t, board+"/posts?limit=1&q=word&sort="+sort, "id")
		require.NotEmpty(t, cursors[sort])
	}
	for _, of := range sorts {
		for _, sort := range sorts {
			path := board + "/posts?limit=1&q=word&sort=" + sort + "&cursor=" + cursors[of]
			if of == sort {
				require.Equal(t, []string{"1"}, n.shown(t, path, "title"))
				continue
			}
			a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, path, nil)
			require.Equal(t, []string{"cursor cursor"}, apptest.FieldRules(a), "of %s with %s", of, sort)
		}
	}
	for _, path := range []string{board + "/posts", "/v1/boards", board + "/tags", board + "/changelog"} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, path+"?cursor="+cursors["votes"], nil)
		require.Equal(t, []string{"cursor cursor"}, apptest.FieldRules(a), path)
	}
}

// A cursor is opaque, but a client can still decode it.
func forgedPostCursors(t *testing.T, n *tenant) {
	board, posts := n.numbered(t, 2)
	id := strings.TrimPrefix(posts[0], "/v1/posts/")
	at := func(query, place string) string {
		list := board + "/posts?" + query
		return list + "&cursor=" + n.Forged(t, list+"&limit=1", place)
	}
	for _, place := range []string{"votes/9223372036854775807", "votes/-9223372036854775808", "active/0000-01-01T00:00:00Z", "active/9999-12-31T23:59:59.999999999Z"} {
		sort, value, _ := strings.Cut(place, "/")
		n.shown(t, at("sort="+sort, value+"/"+id), "id") // a valid place
	}
	for _, test := range []struct{ query, place string }{
		{"sort=newest", "" + id[:29]},
		{"sort=newest", ""},
		{"sort=newest", "1/" + id},
		{"sort=votes", "many/" + id},
		{"sort=votes", "1e3/" + id},
		{"sort=votes", "99999999999999999999/" + id},
		{"sort=votes", "1/" + posts[0]},
		{"sort=active", "yesterday/" + id},
		{"sort=active", "2026-13-01T00:00:00Z/" + id},
		{"sort=revenue&currency=EUR", "-1/" + id},
		{"sort=revenue&currency=EUR", "some/" + id},
		{"q=word", "" + id},
		{"q=word", "x/" + id},
		// Relevance has only the steps 1 and 2.
		{"q=word", "0/" + id},
		{"q=word", "3/" + id},
		{"q=word", "-5/" + id},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, at(test.query, test.place), nil)
		require.Equal(t, []string{"cursor cursor"}, apptest.FieldRules(a), test.place)
	}
}

func TestASearchOfPosts(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"finds words by their stems, all of them, in title and text": searchedWords,
		"takes phrases, exclusions and alternatives":                 searchedSyntax,
		"shows those first whose title has all the words":            searchedRelevance,
		"takes any text that a person types":                         searchedAnything,
		"has 1 to 200 characters":                                    searchLimits,
		"finds a post by its current text":                           searchedAfterEdit,
		"knows posts that were merged":                               searchedMerged,
		"takes any text that a post may have":                        searchedLongTexts,
	})
}

// library makes a board with posts to search.
func (n *tenant) library(t *testing.T) string {
	t.Helper()
	board := n.Board(t)
	for _, p := range [][2]string{
		{"Dark mode", "The screen is too bright at night."},
		{"Mode of payment", "Invoices in the dark ages were on paper."},
		{"Exporting dashboards", "As PDF, please."},
		{"Ärger mit Umlauten", "Größe"},
		{"反馈 按钮", "Идеи"},
		{"Keyboard shortcuts", "Like ctrl-k or C++ & <tags>"},
	} {
		n.say(t, board, p[0], p[1])
	}
	return board
}

// finds checks the results of each search by the beginnings of the titles.
func (n *tenant) finds(t *testing.T, board string, searches map[string]string) {
	t.Helper()
	for q, want := range searches {
		var got []string
		for _, title := range n.shown(t, board+"/posts?q="+url.QueryEscape(q), "title") {
			got = append(got, strings.Fields(title)[0])
		}
		require.Equal(t, strings.Fields(want), append([]string{}, got...), q)
	}
}

func searchedWords(t *testing.T, n *tenant) {
	n.finds(t, n.library(t), map[string]string{
		"dark": "Dark Mode", "DARK": "Dark Mode", "dark mode": "Dark Mode", "mode dark": "Dark Mode",
		"modes": "Mode Dark", "payment modes": "Mode", "dark night": "Dark", "dark pdf": "",
		"export": "Exporting", "exports": "Exporting", "Exported": "Exporting", "dashboard pdf": "Exporting",
		"expor": "", "board": "", "ärger": "Ärger", "ÄRGER größe": "Ärger", "arger": "",
		"反馈": "反馈", "идеи": "反馈", "  keyboard\n\tshortcut ": "Keyboard", "the dark": "Dark Mode",
		"the": "", "is the at": "", " ": "", "missing": "",
	})
}

func searchedSyntax(t *testing.T, n *tenant) {
	n.finds(t, n.library(t), map[string]string{
		`"dark mode"`: "Dark", `"mode dark"`: "", `"mode of payment"`: "Mode", `"modes of payments"`: "Mode",
		"dark -payment": "Dark", "dark -night": "Mode", "mode -dark": "", `mode -"dark mode"`: "Mode",
		"export or shortcut": "Keyboard Exporting", "export OR pdf night": "Exporting",
		"-dark -export -shortcut": "反馈 Ärger", "night or ages": "Mode Dark",
		// A dash of several hyphens excludes nothing. Several exclusions in a row count as one.
		"dark --- payment": "Mode", "--dark": "Dark Mode", "dark--payment": "Mode", "dark - - -payment": "Dark", "dark- -payment": "Dark",
	})
}

func searchedRelevance(t *testing.T, n *tenant) {
	board := n.Board(t)
	for _, p := range [][2]string{
		{"title 1: export to pdf", "anything"},
		{"text 1", "export a pdf"},
		{"split 2: exports", "pdf"},
		{"title 2: pdf exports", "pdf pdf pdf export"},
		{"neither", "pdf"},
		{"text 3", strings.Repeat("export pdf ", 50)},
		{"title 3: export pdf", ""},
		{"split 4: pdf", "export"},
	} {
		n.say(t, board, p[0], p[1])
	}
	want := []string{"title 3: export pdf", "title 2: pdf exports", "title 1: export to pdf", "split 4: pdf", "text 3", "split 2: exports", "text 1"}
	for limit := 1; limit <= 8; limit++ {
		for _, sort := range []string{"", "&sort=relevance"} {
			require.Equal(t, want, n.paged(t, board+"/posts?q=pdf+export"+sort, limit, "title"), "by %d", limit)
		}
	}
	require.Equal(t, []string{"title 3: export pdf", "title 2: pdf exports"}, n.shown(t, board+"/posts?limit=2&q=pdf+export", "title"))
}

// None of these searches is an error.
func searchedAnything(t *testing.T, n *tenant) {
	board := n.library(t)
	for _, q := range []string{
		`"`, `""`, `"dark`, `dark"`, "-", "--", "-\"", "or", "or or", "dark or", "or dark", "&", "|", "!", "()", "dark & !mode", "a:*", "dark:AB",
		"<->", "dark <-> mode", "\\", "'", "''; DROP TABLE posts; --", "%", "_", "*", "{a}", "$1", "🎉", "e\u0301", "\u200b", "\x01", "\u2028",
		strings.Repeat("-", 33), strings.Repeat("- ", 100), strings.Repeat("-!", 100), strings.Repeat("-<", 100), strings.Repeat("-\u2003", 100),
		"C++", "ctrl-k", "<b>", "a@b.c", "https://example.com/a?b=c#d", "1.5e300", "-1", "/usr/lib", "ａ",
	} {
		n.shown(t, board+"/posts?q="+url.QueryEscape(q), "title")
		n.shown(t, board+"/posts?sort=votes&q="+url.QueryEscape(q), "title")
	}
}

// The service cleans the words of a search. This test gives the database words that it refuses.
func TestASearchThatTheDatabaseCanNotReadFindsNothing(t *testing.T) {
	t.Parallel()
	database := testkit.Database(t)
	n := &tenant{apptest.Start(t, apptest.Options{DatabaseURL: database}).Tenant(t)}
	board := n.library(t)
	require.Len(t, n.shown(t, board+"/posts?q=dark", "title"), 2)
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	_, err = c.Exec(t.Context(), `CREATE OR REPLACE FUNCTION searchable(written text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS
		$$ SELECT repeat('-', 33) || written $$`)
	require.NoError(t, err)
	for _, sort := range []string{"", "&sort=votes"} {
		require.Empty(t, n.shown(t, board+"/posts?q=dark"+sort, "title"))
	}
}

func searchLimits(t *testing.T, n *tenant) {
	board := n.Board(t)
	n.say(t, board, strings.Repeat("é", 200), "")
	require.Len(t, n.shown(t, board+"/posts?q="+url.QueryEscape(strings.Repeat("é", 200)), "id"), 1, "characters, not bytes")
	for q, rule := range map[string]string{
		"": "minLength", strings.Repeat("é", 201): "maxLength", "a\x00b": "pattern", "\x00": "pattern", "\xff": "", "dark \xc3": "", "\xed\xa0\x80": "",
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, board+"/posts?q="+url.QueryEscape(q), nil)
		require.Equal(t, http.StatusUnprocessableEntity, a.Status)
		require.Equal(t, []string{"q"}, distinctFields(apptest.FieldRules(a)), "%q", q)
		if rule != "" {
			require.Equal(t, []string{"q " + rule}, apptest.FieldRules(a), "%q", q)
		}
	}
}

func searchedAfterEdit(t *testing.T, n *tenant) {
	board := n.Board(t)
	post := n.say(t, board, "Dark mode", "Too bright.")
	finds := func(q string, want ...string) {
		t.Helper()
		require.Equal(t, want, n.shown(t, board+"/posts?q="+url.QueryEscape(q), "title"), q)
	}
	n.Patch(t, post, object{"title": "Night theme"})
	finds("dark")
	finds("night bright", "Night theme")
	n.Patch(t, post, object{"body": object{"text": "Lamps blind me."}})
	finds("bright")
	finds("blinding lamp", "Night theme")
	n.Patch(t, post, object{"body": object{"json": object{"type": "doc"}}})
	finds("lamp")
	finds("doc")
	n.Patch(t, post, object{"status": "planned", "slug": "lamp", "title": "Night lamp"})
	finds("lamp", "Night lamp")
}

func searchedMerged(t *testing.T, n *tenant) {
	board := n.Board(t)
	target, source := n.say(t, board, "Dark mode", ""), n.say(t, board, "Darkness", "Black on black")
	n.merge(t, target, source)
	require.Equal(t, []string{"Darkness"}, n.shown(t, board+"/posts?q=black", "title"))
	require.Equal(t, []string{"Darkness"}, n.shown(t, board+"/posts?q=darkness&status=duplicate", "title"))
	require.Equal(t, []string{"Dark mode"}, n.shown(t, board+"/posts?q=dark&status=open", "title"))
}

// Each of these texts is saved quickly, because a post is written under locks.
func searchedLongTexts(t *testing.T, n *tenant) {
	board := n.Board(t)
	n.Listen(t, event.PostCreated)
	for _, piece := range []string{
		"a", "é", "a ", "a-", "a.", "a/", "a@", "<", "1.", "-1", "\U0001F389", "http://a.b/c?d=e ",
		// The search parser looks far ahead for these: tags, files, addresses, hosts.
		"<!-- ", "~/", "a_", "@a1",
	} {
		text := strings.Repeat(piece, 50_000/len([]rune(piece)))
		began := time.Now()
		post := n.say(t, board, "Long "+strings.Repeat("x", 195), text)
		require.Less(t, time.Since(began), 5*time.Second, "50,000 characters of %q", piece)
		n.Make(t, http.MethodDelete, post, nil)
	}
}
