package feedback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestABoard(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"starts with its changelog and roadmap shown":         newBoard,
		"gets a slug of its name":                             slugs,
		"gets the next free number when its slug is taken":    numberedSlugs,
		"is refused a slug that it asked for and is taken":    wantedSlug,
		"is refused a slug that doesn't fit the pattern":      badSlugs,
		"may have names and descriptions up to their limits":  boardLimits,
		"has tags whose names differ in more than their case": tagNames,
		"has tags that can be renamed and recoloured":         updateTag,
		"loses a deleted tag from its posts":                  deleteTag,
		"gives a post at most 50 tags":                        fiftyTags,
	})
}

func newBoard(t *testing.T, n *tenant) {
	a := n.Do(t, http.MethodPost, "/v1/boards", object{"name": "  Feature requests ", "description": " As is. "})
	require.Equal(t, http.StatusOK, a.Status, "specified, unlike other creations")
	made := a.Data()
	require.Equal(t, object{
		"organizationId": n.Organization.ID.String(), "name": "Feature requests", "slug": "feature-requests",
		"description": " As is. ", "showChangelog": true, "showRoadmap": true, "public": false, "moderated": false,
	}, apptest.Without(made, "id", "createdAt", "updatedAt"))
	list := n.Do(t, http.MethodGet, "/v1/boards", nil)
	require.Equal(t, object{"data": []any{made}, "nextCursor": nil}, list.Body)
}

func slugs(t *testing.T, n *tenant) {
	for name, slug := range map[string]string{
		"Simple": "simple", "Two  words": "two-words", "Ünïcödé": "unicode", "C++ & C#": "c-and-c",
		"a_b__c": "a-b-c", "--x--": "x", "反馈": "fan-kui", "Идеи": "idei", "100%": "100",
		"🎉": "board", "…": "board", "_": "board", "A.B/C\\D": "a-b-c-d",
		strings.Repeat("ab ", 26): strings.Repeat("ab-", 20)[:59],
		strings.Repeat("馈", 80):   "",
	} {
		stranger := n.on(t, "business") // where every slug is free
		made := stranger.Make(t, http.MethodPost, "/v1/boards", object{"name": name})["slug"]
		require.Regexp(t, "^[a-z0-9]+(-[a-z0-9]+)*$", made, name)
		require.LessOrEqual(t, len(made.(string)), 60)
		if slug != "" {
			require.Equal(t, slug, made, name)
		}
	}
}

func numberedSlugs(t *testing.T, n *tenant) {
	long := strings.Repeat("x", 60)
	for i := 1; i <= 12; i++ {
		want, wantLong := fmt.Sprintf("ideas-%d", i), fmt.Sprintf("%s-%d", long[:60-len(fmt.Sprint("-", i))], i)
		if i == 1 {
			want, wantLong = "ideas", long
		}
		require.Equal(t, want, n.Make(t, http.MethodPost, "/v1/boards", object{"name": "Ideas"})["slug"])
		require.Equal(t, wantLong, n.Make(t, http.MethodPost, "/v1/boards", object{"name": long})["slug"])
	}
	stranger := n.on(t, "business")
	require.Equal(t, "ideas", stranger.Make(t, http.MethodPost, "/v1/boards", object{"name": "Ideas"})["slug"])
}

func wantedSlug(t *testing.T, n *tenant) {
	require.Equal(t, "x-1", n.Make(t, http.MethodPost, "/v1/boards", object{"name": "Ideas", "slug": "x-1"})["slug"])
	a := n.Refused(t, "ERR_CONFLICT", http.MethodPost, "/v1/boards", object{"name": "Other", "slug": "x-1"})
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, "slug", a.Details()["field"])
}

func badSlugs(t *testing.T, n *tenant) {
	unchanged := n.Watch(t)
	for _, slug := range []string{"", "A", "a b", "a--b", "-a", "a-", "a_b", "é", "a\n", strings.Repeat("a", 61)} {
		a := n.Do(t, http.MethodPost, "/v1/boards", object{"name": "Ideas", "slug": slug})
		require.Contains(t, a.Fields(), "slug", slug)
	}
	unchanged(t)
	require.Equal(t, strings.Repeat("a", 60),
		n.Make(t, http.MethodPost, "/v1/boards", object{"name": "Ideas", "slug": strings.Repeat("a", 60)})["slug"])
}

func boardLimits(t *testing.T, n *tenant) {
	made := n.Make(t, http.MethodPost, "/v1/boards", object{
		"name": " " + strings.Repeat("é", 80) + " ", "description": strings.Repeat("é", 500),
	})
	require.Equal(t, strings.Repeat("é", 80), made["name"])
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, "/v1/boards", object{
		"name": strings.Repeat("é", 81), "description": strings.Repeat("é", 501), "slug": "-",
	})
	require.ElementsMatch(t, []string{"name", "description", "slug"}, a.Fields())
}

func tagNames(t *testing.T, n *tenant) {
	board := n.Board(t)
	made := n.Make(t, http.MethodPost, board+"/tags", object{"name": " Ärger "})
	require.Equal(t, "Ärger", made["name"])
	require.Equal(t, "#6b7280", made["color"])
	a := n.Refused(t, "ERR_CONFLICT", http.MethodPost, board+"/tags", object{"name": "äRGER"})
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, "name", a.Details()["field"])
	require.Equal(t, "äRGER", n.Make(t, http.MethodPost, n.Board(t)+"/tags", object{"name": "äRGER"})["name"], "another board")
}

func updateTag(t *testing.T, n *tenant) {
	board := n.Board(t)
	n.ID(t, board+"/tags", object{"name": "Taken"})
	made := n.Make(t, http.MethodPost, board+"/tags", object{"name": "mobile", "color": "#AABBCC"})
	tag := board + "/tags/" + made["id"].(string)
	require.Equal(t, "Mobile", n.Patch(t, tag, object{"name": "Mobile"})["name"], "its own name in another case")
	changed := n.Patch(t, tag, object{"color": "#000000"})
	require.Equal(t, "Mobile #000000", fmt.Sprint(changed["name"], " ", changed["color"]))
	require.Greater(t, changed["updatedAt"], made["updatedAt"])
	require.Equal(t, changed, n.Patch(t, tag, changed))
	for given, kept := range map[string]string{"#Abc": "#aabbcc", "#A0B1C2": "#a0b1c2", "#fff": "#ffffff"} {
		require.Equal(t, kept, n.Patch(t, tag, object{"color": given})["color"], given)
	}
	n.Refused(t, "ERR_CONFLICT", http.MethodPatch, tag, object{"name": "TAKEN", "color": "#ffffff"})
	for _, color := range []string{"", "red", "#ffff", "#ggg", "#gggggg", "000000", "#0000000", "#000000\n"} {
		n.Refused(t, "ERR_VALIDATION", http.MethodPatch, tag, object{"color": color})
	}
}

func deleteTag(t *testing.T, n *tenant) {
	board := n.Board(t)
	tag, kept := n.ID(t, board+"/tags", object{"name": "a"}), n.ID(t, board+"/tags", object{"name": "b"})
	post := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x", "tagIds": []string{tag, kept}})
	require.Equal(t, object{"id": tag}, n.Make(t, http.MethodDelete, board+"/tags/"+tag, nil))
	require.Equal(t, []any{kept}, n.Get(t, post)["tagIds"])
	n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, board+"/tags/"+tag, nil)
	n.ID(t, board+"/tags", object{"name": "a"})
}

func fiftyTags(t *testing.T, n *tenant) {
	board := n.Board(t)
	tags := make([]string, 50)
	for i := range tags {
		tags[i] = n.ID(t, board+"/tags", object{"name": fmt.Sprint(i)})
	}
	made := n.Make(t, http.MethodPost, board+"/posts", object{"title": "x", "tagIds": tags})
	require.Len(t, made["tagIds"], 50)
	more := append(tags, n.ID(t, board+"/tags", object{"name": "one more"}))
	n.Refused(t, "ERR_VALIDATION", http.MethodPost, board+"/posts", object{"title": "x", "tagIds": more})
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, "/v1/posts/"+made["id"].(string), object{"tagIds": more})
	require.Equal(t, []string{"tagIds"}, a.Fields())
}

func TestABoardThatIsChangedOrDeleted(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"changes in the members that are sent and no others":                patchBoardEach,
		"sent back as it was read doesn't change":                           boardSentBack,
		"is refused a slug that another of the organization has":            boardSlugTaken,
		"is refused with every failure of a patch at once":                  badBoardPatch,
		"is deleted only if the request repeats its name, letter by letter": confirmBoardName,
		"isn't deleted while it holds anything, and says how much":          boardNotEmpty,
		"doesn't stay for posts that were deleted, and takes them":          boardOfDeletedPosts,
		"is gone for every operation once deleted, and leaves its slug":     boardGone,
	})
}

func patchBoardEach(t *testing.T, n *tenant) {
	board := n.Board(t)
	for _, change := range []object{
		{"name": "Feature requests"},
		{"slug": "wishes"},
		{"description": " As is. "},
		{"description": ""},
		{"showChangelog": false},
		{"showRoadmap": false},
		{"public": true},
		{"name": "Ideas", "slug": "ideas", "showChangelog": true, "showRoadmap": true},
	} {
		before := n.Get(t, board)
		got := n.Patch(t, board, change)
		for name, value := range change {
			require.Equal(t, value, got[name], name)
			before[name] = value
		}
		require.Greater(t, got["updatedAt"], before["updatedAt"])
		before["updatedAt"] = got["updatedAt"]
		require.Equal(t, before, got)
		require.Equal(t, got, n.Get(t, board))
	}
	require.Equal(t, "Trimmed", n.Patch(t, board, object{"name": "  Trimmed "})["name"])
}

func boardSentBack(t *testing.T, n *tenant) {
	read := n.Get(t, n.Board(t))
	board := "/v1/boards/" + read["id"].(string)
	n.Listen(t)
	unchanged := n.Watch(t)
	require.Equal(t, read, n.Patch(t, board, read))
	require.Equal(t, read, n.Patch(t, board, object{}))
	for name, value := range apptest.Without(read, "id", "organizationId", "createdAt", "updatedAt") {
		require.Equal(t, read, n.Patch(t, board, object{name: value}), name)
	}
	require.Equal(t, read, n.Patch(t, board, object{"name": " Ideas "}), "the name is trimmed before it is compared")
	unchanged(t)
}

func boardSlugTaken(t *testing.T, n *tenant) {
	n.Board(t)
	board := n.Board(t)
	a := n.Refused(t, "ERR_CONFLICT", http.MethodPatch, board, object{"slug": "ideas", "name": "Other"})
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, object{"field": "slug"}, a.Details())
	stranger := n.on(t, "business")
	stranger.Board(t)
	n.Patch(t, board, object{"slug": "wishes"})
	require.Equal(t, "wishes", stranger.Patch(t, stranger.Board(t), object{"slug": "wishes"})["slug"], "another organization")
}

func badBoardPatch(t *testing.T, n *tenant) {
	board := n.Board(t)
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, board, object{
		"name": strings.Repeat("é", 81), "slug": "a--b", "description": strings.Repeat("é", 501),
	})
	require.ElementsMatch(t, []string{"name", "slug", "description"}, a.Fields())
	for field, value := range map[string]any{
		"name": " \t ", "slug": "", "description": "a\x00b", "showChangelog": "yes", "showRoadmap": 1, "public": "true",
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, board, object{field: value})
		require.Equal(t, []string{field}, a.Fields())
	}
	n.Patch(t, board, object{
		"name": strings.Repeat("é", 80), "slug": strings.Repeat("a", 60), "description": strings.Repeat("é", 500),
	})
}

func confirmBoardName(t *testing.T, n *tenant) {
	board := "/v1/boards/" + n.ID(t, "/v1/boards", object{"name": "Ärger & Ideas", "slug": "ideas"})
	n.ID(t, board+"/posts", object{"title": "x"})
	for _, name := range []string{"ärger & ideas", " Ärger & Ideas", "Ärger & Ideas ", "Ärger", "A\u0308rger & Ideas", "ideas"} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodDelete, board, object{"confirmName": name})
		require.Equal(t, http.StatusUnprocessableEntity, a.Status, "the name comes before what is on the board")
		require.Equal(t, []string{"confirmName match"}, apptest.FieldRules(a), name)
	}
	for rule, body := range map[string]object{
		"minLength": {"confirmName": ""},
		"maxLength": {"confirmName": strings.Repeat("é", 81)},
		"type":      {"confirmName": 1},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodDelete, board, body)
		require.Equal(t, []string{"confirmName " + rule}, apptest.FieldRules(a))
	}
	require.Equal(t, []string{"confirmName"}, n.Refused(t, "ERR_VALIDATION", http.MethodDelete, board, object{}).Fields())
	empty := n.Board(t)
	require.Equal(t, object{"id": strings.TrimPrefix(empty, "/v1/boards/")},
		n.Make(t, http.MethodDelete, empty, object{"confirmName": "Ideas"}))
}

func boardNotEmpty(t *testing.T, n *tenant) {
	board := n.Board(t)
	var posts, tags []string
	for i := range 3 {
		tags = append(tags, board+"/tags/"+n.ID(t, board+"/tags", object{"name": fmt.Sprint(i)}))
	}
	for range 2 {
		posts = append(posts, "/v1/posts/"+n.ID(t, board+"/posts", object{"title": "x"}))
	}
	entry := "/v1/changelog/" + n.ID(t, board+"/changelog", object{"title": "x"})
	for _, left := range []struct {
		posts, entries, tags string
		next                 []string
	}{
		{"2", "1", "3", posts[:1]},
		{"1", "1", "3", append(posts[1:], tags[1:]...)},
		{"0", "1", "1", tags[:1]},
		{"0", "1", "0", []string{entry}},
	} {
		a := n.Refused(t, "ERR_CONFLICT", http.MethodDelete, board, object{"confirmName": "Ideas"})
		require.Equal(t, http.StatusConflict, a.Status)
		require.Equal(t, object{
			"reason": "board_not_empty", "posts": json.Number(left.posts),
			"changelogEntries": json.Number(left.entries), "tags": json.Number(left.tags),
		}, a.Details())
		for _, path := range left.next {
			n.Make(t, http.MethodDelete, path, nil)
		}
	}
	n.Make(t, http.MethodDelete, board, object{"confirmName": "Ideas"})
}

// The deleted posts have every kind of row that refers to a post.
func boardOfDeletedPosts(t *testing.T, n *tenant) {
	kept := n.Post(t)
	n.ID(t, kept+"/votes", nil)
	n.Comment(t, kept, "")
	board := n.Board(t)
	tag := board + "/tags/" + n.ID(t, board+"/tags", object{"name": "Mobile"})
	contact := n.Identify(t, object{"externalUserId": "u-1"})["id"]
	var posts []string
	for range 3 {
		posts = append(posts, n.ID(t, board+"/posts", object{
			"title": "x", "contactId": contact, "tagIds": []string{strings.TrimPrefix(tag, board+"/tags/")},
		}))
	}
	for _, id := range posts {
		n.ID(t, "/v1/posts/"+id+"/votes", nil)
		top := n.Comment(t, "/v1/posts/"+id, "")
		n.Comment(t, "/v1/posts/"+id, top)
		n.Make(t, http.MethodDelete, "/v1/comments/"+top, nil)
	}
	entry := n.ID(t, n.Board(t)+"/changelog", object{"title": "x"})
	n.Make(t, http.MethodPut, "/v1/changelog/"+entry+"/linked-posts", object{"postIds": posts})
	n.Make(t, http.MethodPost, "/v1/posts/"+posts[0]+"/merge", object{"sourceIds": posts[1:2]})
	for _, id := range posts {
		n.Make(t, http.MethodDelete, "/v1/posts/"+id, nil)
	}
	n.Make(t, http.MethodDelete, tag, nil)
	n.Make(t, http.MethodDelete, board, object{"confirmName": "Ideas"})
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	require.Equal(t, []int{1, 1, 1}, []int{client.Post.Query().CountX(ctx), client.Vote.Query().CountX(ctx), client.Comment.Query().CountX(ctx)},
		"what is left is the other board's")
	require.Equal(t, "1 1", fmt.Sprint(n.Get(t, kept)["voteCount"], " ", n.Get(t, kept)["commentCount"]))
}

func boardGone(t *testing.T, n *tenant) {
	board := n.Board(t)
	tag := board + "/tags/" + n.ID(t, board+"/tags", object{"name": "Mobile"})
	n.Make(t, http.MethodDelete, tag, nil)
	n.Make(t, http.MethodDelete, board, object{"confirmName": "Ideas"})
	for _, r := range []struct {
		method, path string
		body         any
	}{
		{http.MethodGet, board, nil},
		{http.MethodPatch, board, object{"name": "x"}},
		{http.MethodDelete, board, object{"confirmName": "Ideas"}},
		{http.MethodGet, board + "/tags", nil},
		{http.MethodPost, board + "/tags", object{"name": "x"}},
		{http.MethodPatch, tag, object{"name": "x"}},
		{http.MethodDelete, tag, nil},
		{http.MethodGet, board + "/posts", nil},
		{http.MethodGet, board + "/posts?q=x", nil},
		{http.MethodPost, board + "/posts", object{"title": "x"}},
		{http.MethodGet, board + "/changelog", nil},
		{http.MethodPost, board + "/changelog", object{"title": "x"}},
	} {
		n.Refused(t, "ERR_NOT_FOUND", r.method, r.path, r.body)
	}
	require.Empty(t, n.Walk(t, "/v1/boards", "50", func() {}))
	require.Equal(t, "ideas", n.Get(t, n.Board(t))["slug"])
}
