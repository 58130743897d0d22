package feedback_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		"description": " As is. ", "showChangelog": true, "showRoadmap": true,
	}, without(made, "id", "createdAt", "updatedAt"))
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
	a := n.refused(t, "ERR_CONFLICT", http.MethodPost, "/v1/boards", object{"name": "Other", "slug": "x-1"})
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
	a := n.refused(t, "ERR_VALIDATION", http.MethodPost, "/v1/boards", object{
		"name": strings.Repeat("é", 81), "description": strings.Repeat("é", 501), "slug": "-",
	})
	require.ElementsMatch(t, []string{"name", "description", "slug"}, a.Fields())
}

func tagNames(t *testing.T, n *tenant) {
	board := n.board(t)
	made := n.Make(t, http.MethodPost, board+"/tags", object{"name": " Ärger "})
	require.Equal(t, "Ärger", made["name"])
	require.Equal(t, "#6b7280", made["color"])
	a := n.refused(t, "ERR_CONFLICT", http.MethodPost, board+"/tags", object{"name": "äRGER"})
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, "name", a.Details()["field"])
	require.Equal(t, "äRGER", n.Make(t, http.MethodPost, n.board(t)+"/tags", object{"name": "äRGER"})["name"], "another board")
}

func updateTag(t *testing.T, n *tenant) {
	board := n.board(t)
	n.ID(t, board+"/tags", object{"name": "Taken"})
	made := n.Make(t, http.MethodPost, board+"/tags", object{"name": "mobile", "color": "#AABBCC"})
	tag := board + "/tags/" + made["id"].(string)
	require.Equal(t, "Mobile", n.patch(t, tag, object{"name": "Mobile"})["name"], "its own name in another case")
	changed := n.patch(t, tag, object{"color": "#000000"})
	require.Equal(t, "Mobile #000000", fmt.Sprint(changed["name"], " ", changed["color"]))
	require.Greater(t, changed["updatedAt"], made["updatedAt"])
	require.Equal(t, changed, n.patch(t, tag, changed))
	n.refused(t, "ERR_CONFLICT", http.MethodPatch, tag, object{"name": "TAKEN", "color": "#ffffff"})
	for _, color := range []string{"", "red", "#fff", "#gggggg", "000000", "#0000000", "#000000\n"} {
		n.refused(t, "ERR_VALIDATION", http.MethodPatch, tag, object{"color": color})
	}
}

func deleteTag(t *testing.T, n *tenant) {
	board := n.board(t)
	tag, kept := n.ID(t, board+"/tags", object{"name": "a"}), n.ID(t, board+"/tags", object{"name": "b"})
	post := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x", "tagIds": []string{tag, kept}})
	require.Equal(t, object{"id": tag}, n.Make(t, http.MethodDelete, board+"/tags/"+tag, nil))
	require.Equal(t, []any{kept}, n.get(t, post)["tagIds"])
	n.refused(t, "ERR_NOT_FOUND", http.MethodDelete, board+"/tags/"+tag, nil)
	n.ID(t, board+"/tags", object{"name": "a"})
}

func fiftyTags(t *testing.T, n *tenant) {
	board := n.board(t)
	tags := make([]string, 50)
	for i := range tags {
		tags[i] = n.ID(t, board+"/tags", object{"name": fmt.Sprint(i)})
	}
	made := n.Make(t, http.MethodPost, board+"/posts", object{"title": "x", "tagIds": tags})
	require.Len(t, made["tagIds"], 50)
	more := append(tags, n.ID(t, board+"/tags", object{"name": "one more"}))
	n.refused(t, "ERR_VALIDATION", http.MethodPost, board+"/posts", object{"title": "x", "tagIds": more})
	a := n.refused(t, "ERR_VALIDATION", http.MethodPatch, "/v1/posts/"+made["id"].(string), object{"tagIds": more})
	require.Equal(t, []string{"tagIds"}, a.Fields())
}
