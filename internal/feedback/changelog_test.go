package feedback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestAChangelogEntry(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is a draft unless it says when to be published":           draftEntry,
		"is published at once by a moment that is past":            publishedEntry,
		"is scheduled by a moment to come and not told":            scheduledEntry,
		"is read as it was made":                                   readEntry,
		"is listed newest first, drafts included":                  listEntries,
		"is on its own board":                                      entriesOfABoard,
		"has a slug of its title, with a number where it is taken": entrySlugs,
		"is refused a slug that another of its board has":          takenEntrySlug,
		"names a version of 1 to 40 characters, or none":           entryVersion,
		"takes everything up to its limit":                         entryAtItsLimits,
		"is refused with every failure at once":                    badEntry,
		"changes in the members that are sent and no others":       patchEntry,
		"is replaced in its body as a whole":                       patchEntryBody,
		"sent back as it was read doesn't change":                  entrySentBack,
		"is deleted with its links and without its posts":          deleteEntry,
		"of another organization isn't there":                      foreignEntry,
	})
}

func TestThePublicationOfAnEntry(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"follows publishedAt from any state into any other":     everyPublication,
		"is told again after the entry became a draft":          toldAgain,
		"is told with the other changes of the same patch":      toldAsPatched,
		"doesn't touch the status of linked posts":              postsStayOpen,
		"keeps its moment to the microsecond, with any offset":  momentKept,
		"is refused a moment that has no place in the calendar": badMoments,
		"on schedule is told once, when it is due":              publishedOnSchedule,
		"on schedule happens though the bills are unpaid":       publishedUnpaid,
		"on schedule says when to look again, if at all":        nothingToPublish,
		"happens when a moment that passed is set again":        setAgainWhenDue,
	})
}

func TestTheLinksOfAnEntry(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"are replaced as a whole, in order and each once":  replaceLinks,
		"are cleared by an empty list and by nothing less": clearLinks,
		"that are the same again change nothing":           sameLinks,
		"may lead to any board":                            linksAcrossBoards,
		"are a hundred at most":                            hundredLinks,
		"must lead to posts that are there":                linksToNowhere,
		"end with their posts":                             linkedPostDeleted,
	})
}

// changelogEntry makes an entry on a new board and returns its path.
func (n *tenant) changelogEntry(t *testing.T, body object) string {
	t.Helper()
	return "/v1/changelog/" + n.ID(t, n.Board(t)+"/changelog", body)
}

func (n *tenant) put(t *testing.T, path string, body any) object {
	t.Helper()
	return n.Make(t, http.MethodPut, path, body)
}

func draftEntry(t *testing.T, n *tenant) {
	board := n.Board(t)
	n.Listen(t)
	for _, body := range []object{{"title": " Faster search "}, {"title": "Faster search", "publishedAt": nil, "version": nil, "slug": "b"}} {
		a := n.Do(t, http.MethodPost, board+"/changelog", body)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
		made := a.Data()
		require.Equal(t, object{
			"organizationId": n.Organization.ID.String(), "boardId": strings.TrimPrefix(board, "/v1/boards/"),
			"title": "Faster search", "version": nil, "body": object{"json": nil, "text": ""},
			"publishedAt": nil, "state": "draft", "postIds": []any{},
		}, apptest.Without(made, "id", "slug", "createdAt", "updatedAt"))
		require.Equal(t, made["createdAt"], made["updatedAt"])
	}
	require.Empty(t, n.Recorded(t))
}

func publishedEntry(t *testing.T, n *tenant) {
	board := n.Board(t)
	n.Listen(t)
	made := n.Make(t, http.MethodPost, board+"/changelog", object{"title": "Faster search", "publishedAt": apptest.LongPast})
	require.Equal(t, "published", made["state"])
	require.Equal(t, apptest.LongPast, made["publishedAt"])
	require.Equal(t, []object{{
		"event": "changelog.published", "organizationId": n.Organization.ID.String(), "boardId": made["boardId"],
		"entry": object{"id": made["id"], "title": "Faster search", "slug": "faster-search", "publishedAt": apptest.LongPast},
	}}, n.Payloads(t, event.ChangelogPublished))
	require.Len(t, n.Recorded(t), 1)
}

func scheduledEntry(t *testing.T, n *tenant) {
	n.Listen(t)
	made := n.Get(t, n.changelogEntry(t, object{"title": "x", "publishedAt": apptest.FarAway}))
	require.Equal(t, "scheduled", made["state"])
	require.Equal(t, apptest.FarAway, made["publishedAt"])
	require.Empty(t, n.Recorded(t))
}

func readEntry(t *testing.T, n *tenant) {
	const document = `{"z":9007199254740993,"a":1.50,"e":1e400,"nul":"\u0000"}`
	a := n.Do(t, http.MethodPost, n.Board(t)+"/changelog",
		`{"title":"x","slug":"y","version":"2.4","body":{"json":`+document+`,"text":"z"},"publishedAt":"`+apptest.FarAway+`"}`)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
	require.Contains(t, string(a.Raw), `"body":{"json":`+document+`,"text":"z"}`)
	require.Equal(t, "y 2.4", fmt.Sprint(a.Data()["slug"], " ", a.Data()["version"]))
	read := n.Do(t, http.MethodGet, "/v1/changelog/"+a.Data()["id"].(string), nil)
	require.Equal(t, string(a.Raw), string(read.Raw))
}

func listEntries(t *testing.T, n *tenant) {
	path := n.Board(t) + "/changelog"
	states := []any{nil, apptest.LongPast, apptest.FarAway}
	walks(t, n, list{path, func(i int) string {
		return n.ID(t, path, object{"title": "x", "publishedAt": states[i%len(states)]})
	}, true, 25, false})
}

func entriesOfABoard(t *testing.T, n *tenant) {
	mine, other := n.Board(t)+"/changelog", n.Board(t)+"/changelog"
	id := n.ID(t, mine, object{"title": "x"})
	n.ID(t, other, object{"title": "x"})
	post := n.NewPosts(t, 1)
	linked := n.put(t, "/v1/changelog/"+id+"/linked-posts", object{"postIds": post})
	require.Equal(t, []any{linked}, n.Do(t, http.MethodGet, mine, nil).Body["data"], "with its links")
}

func entrySlugs(t *testing.T, n *tenant) {
	board := n.Board(t)
	long := strings.Repeat("long ", 40)
	for _, test := range []struct{ title, slug string }{
		{"Faster search!", "faster-search"},
		{"Faster search", "faster-search-2"},
		{"Faster  Search", "faster-search-3"},
		{"🎉", "entry"},
		{"!", "entry-2"},
		{long, strings.TrimRight(strings.ReplaceAll(long, " ", "-")[:80], "-")},
		{long, strings.TrimRight(strings.ReplaceAll(long, " ", "-")[:78], "-") + "-2"},
	} {
		require.Equal(t, test.slug, n.Make(t, http.MethodPost, board+"/changelog", object{"title": test.title})["slug"])
	}
	require.Equal(t, "faster-search", n.Get(t, n.changelogEntry(t, object{"title": "Faster search"}))["slug"], "on another board")
}

func takenEntrySlug(t *testing.T, n *tenant) {
	board := n.Board(t) + "/changelog"
	n.ID(t, board, object{"title": "a", "slug": "taken"})
	other := "/v1/changelog/" + n.ID(t, board, object{"title": "b"})
	n.Listen(t)
	publish := object{"title": "c", "slug": "taken", "publishedAt": apptest.LongPast}
	for _, a := range []interface{ Details() map[string]any }{
		n.Refused(t, "ERR_CONFLICT", http.MethodPost, board, publish),
		n.Refused(t, "ERR_CONFLICT", http.MethodPatch, other, publish),
	} {
		require.Equal(t, object{"field": "slug"}, a.Details())
	}
	n.changelogEntry(t, publish)
	require.Equal(t, "taken-2", n.Patch(t, other, object{"slug": "taken-2"})["slug"])
}

func entryVersion(t *testing.T, n *tenant) {
	board := n.Board(t) + "/changelog"
	for _, version := range []any{nil, "2", strings.Repeat("é", 40)} {
		made := n.Make(t, http.MethodPost, board, object{"title": "x", "version": version})
		require.Equal(t, version, made["version"])
		path := "/v1/changelog/" + made["id"].(string)
		require.Equal(t, "other", n.Patch(t, path, object{"version": "other"})["version"])
		require.Equal(t, version, n.Patch(t, path, object{"version": version})["version"])
	}
	entry := "/v1/changelog/" + n.ID(t, board, object{"title": "x", "version": "2"})
	for _, version := range []any{"", strings.Repeat("é", 41), 2, "\x00"} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, board, object{"title": "x", "version": version})
		require.Equal(t, []string{"version"}, a.Fields(), "%q", version)
		a = n.Refused(t, "ERR_VALIDATION", http.MethodPatch, entry, object{"title": "y", "version": version})
		require.Equal(t, []string{"version"}, a.Fields(), "%q", version)
	}
}

func entryAtItsLimits(t *testing.T, n *tenant) {
	board := n.Board(t) + "/changelog"
	body := object{
		"title": strings.Repeat("é", 200), "slug": strings.Repeat("a", 80), "version": "1",
		"body": object{"json": strings.Repeat("x", 256<<10-2), "text": strings.Repeat("é", 50_000)},
	}
	made := n.Make(t, http.MethodPost, board, body)
	patched := n.Patch(t, "/v1/changelog/"+n.ID(t, board, object{"title": "x"}), apptest.Without(body, "slug"))
	for name := range apptest.Without(body, "slug") {
		require.Equal(t, body[name], made[name])
		require.Equal(t, body[name], patched[name])
	}
}

func badEntry(t *testing.T, n *tenant) {
	board := n.Board(t)
	entry := "/v1/changelog/" + n.ID(t, board+"/changelog", object{"title": "x"})
	for _, bad := range []object{
		{"title": "", "slug": "", "version": "", "body": object{"text": 1}, "publishedAt": "9999-12-31T23:59:59-01:00"},
		{
			"title": strings.Repeat("é", 201), "slug": strings.Repeat("a", 81), "version": strings.Repeat("é", 41),
			"body": object{"text": strings.Repeat("é", 50_001)}, "publishedAt": "0001-01-01T00:00:00+00:01",
		},
		{"title": " \t", "slug": "A b", "version": 1, "body": object{"text": nil}, "publishedAt": "0000-12-31T00:00:00Z"},
	} {
		want := []string{"title", "slug", "version", "body.text", "publishedAt"}
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, board+"/changelog", bad)
		require.ElementsMatch(t, want, a.Fields(), "%s", a.Raw)
		a = n.Refused(t, "ERR_VALIDATION", http.MethodPatch, entry, bad)
		require.ElementsMatch(t, want, a.Fields(), "%s", a.Raw)
	}
	tooLarge := object{"title": "x", "body": object{"json": strings.Repeat("x", 256<<10-1)}}
	require.Equal(t, []string{"body.json"}, n.Refused(t, "ERR_VALIDATION", http.MethodPatch, entry, tooLarge).Fields())
	require.Equal(t, []string{"title"}, n.Refused(t, "ERR_VALIDATION", http.MethodPost, board+"/changelog", object{}).Fields())
}

func patchEntry(t *testing.T, n *tenant) {
	entry := n.changelogEntry(t, object{"title": "x", "version": "1", "body": object{"text": "y"}, "publishedAt": apptest.FarAway})
	for _, change := range []object{
		{"title": "Faster search"}, {"slug": "faster"}, {"version": "2"}, {"version": nil},
		{"body": object{"json": object{"a": []any{}}, "text": "z"}}, {"title": "Fast search", "slug": "fast"}, {"publishedAt": apptest.Farther},
	} {
		before := n.Get(t, entry)
		got := n.Patch(t, entry, change)
		for name, value := range change {
			before[name] = value
		}
		apptest.Later(t, got, before, "updatedAt")
		before["updatedAt"] = got["updatedAt"]
		require.Equal(t, before, got)
		require.Equal(t, got, n.Get(t, entry))
	}
	require.Equal(t, "Trimmed", n.Patch(t, entry, object{"title": "\t Trimmed \n"})["title"])
}

func patchEntryBody(t *testing.T, n *tenant) {
	entry := n.changelogEntry(t, object{"title": "x", "body": object{"json": object{"a": true}, "text": "y"}})
	require.Equal(t, object{"json": nil, "text": "z"}, n.Patch(t, entry, object{"body": object{"text": "z"}})["body"])
	require.Equal(t, object{"json": []any{}, "text": ""}, n.Patch(t, entry, object{"body": object{"json": []any{}}})["body"])
	require.Equal(t, object{"json": nil, "text": ""}, n.Patch(t, entry, object{"body": object{}})["body"])
}

func entrySentBack(t *testing.T, n *tenant) {
	posts := n.NewPosts(t, 2)
	n.Listen(t)
	for _, at := range []any{nil, apptest.LongPast, apptest.FarAway, "2020-05-17T10:11:12.123456+02:00"} {
		entry := n.changelogEntry(t, object{
			"title": "x", "version": "1", "publishedAt": at, "body": object{"json": object{"b": 1, "a": json.Number("1.50")}, "text": "<&>"},
		})
		read := n.put(t, entry+"/linked-posts", object{"postIds": posts})
		unchanged := n.Watch(t)
		require.Equal(t, read, n.Patch(t, entry, read), "%v", at)
		require.Equal(t, read, n.Patch(t, entry, object{}), "%v", at)
		unchanged(t)
	}
}

func deleteEntry(t *testing.T, n *tenant) {
	posts := n.NewPosts(t, 1)
	for _, at := range []any{nil, apptest.LongPast, apptest.FarAway} {
		entry := n.changelogEntry(t, object{"title": "x", "publishedAt": at})
		n.put(t, entry+"/linked-posts", object{"postIds": posts})
		a := n.Do(t, http.MethodDelete, entry, nil)
		require.Equal(t, http.StatusOK, a.Status)
		require.Equal(t, object{"id": strings.TrimPrefix(entry, "/v1/changelog/")}, a.Data())
		n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, entry, nil)
		n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, entry, nil)
	}
	require.Zero(t, n.App.Store.Client().ChangelogLink.Query().CountX(n.Context(t.Context())))
	require.Equal(t, posts[0], n.Get(t, "/v1/posts/"+posts[0].(string))["id"])
}

func foreignEntry(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	board := stranger.Board(t)
	theirs := "/v1/changelog/" + stranger.ID(t, board+"/changelog", object{"title": "x"})
	post := n.NewPosts(t, 1)
	unchanged := stranger.Watch(t)
	for _, entry := range []string{theirs, "/v1/changelog/" + publicid.NewChangelogEntry().String()} {
		n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, entry, nil)
		n.Refused(t, "ERR_NOT_FOUND", http.MethodPatch, entry, object{"title": "y"})
		n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, entry, nil)
		n.Refused(t, "ERR_NOT_FOUND", http.MethodPut, entry+"/linked-posts", object{"postIds": post})
	}
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, board+"/changelog", nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, board+"/changelog", object{"title": "x"})
	unchanged(t)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, "/v1/changelog/"+post[0].(string), nil)
}

func everyPublication(t *testing.T, n *tenant) {
	board := n.Board(t) + "/changelog"
	n.Listen(t)
	states := map[any]string{nil: "draft", apptest.LongPast: "published", apptest.LessPast: "published", apptest.FarAway: "scheduled", apptest.Farther: "scheduled"}
	for from := range states {
		for to, state := range states {
			entry := "/v1/changelog/" + n.ID(t, board, object{"title": "x", "publishedAt": from})
			told := len(n.Recorded(t))
			got := n.Patch(t, entry, object{"publishedAt": to})
			require.Equal(t, []any{to, state}, []any{got["publishedAt"], got["state"]}, "from %v", from)
			require.Equal(t, got, n.Get(t, entry))
			want := 0
			if state == "published" && states[from] != "published" {
				want = 1
			}
			require.Len(t, n.Recorded(t), told+want, "from %v to %v", from, to)
		}
	}
}

func toldAgain(t *testing.T, n *tenant) {
	n.Listen(t)
	entry := n.changelogEntry(t, object{"title": "x"})
	for _, at := range []any{apptest.LongPast, nil, apptest.LongPast, apptest.FarAway, apptest.LessPast} {
		n.Patch(t, entry, object{"publishedAt": at})
	}
	var moments []string
	for _, p := range n.Payloads(t, event.ChangelogPublished) {
		moments = append(moments, p["entry"].(object)["publishedAt"].(string))
	}
	require.Equal(t, []string{apptest.LongPast, apptest.LongPast, apptest.LessPast}, moments, "once for each time that it wasn't published before")
}

func toldAsPatched(t *testing.T, n *tenant) {
	entry := n.changelogEntry(t, object{"title": "Draft"})
	n.Listen(t)
	n.Patch(t, entry, object{"title": " Final ", "slug": "final", "publishedAt": "2020-05-17T12:11:12+02:00"})
	n.Patch(t, entry, object{"title": "Corrected"})
	told := n.Payloads(t, event.ChangelogPublished)
	require.Len(t, told, 1)
	require.Equal(t, object{
		"id": strings.TrimPrefix(entry, "/v1/changelog/"), "title": "Final", "slug": "final", "publishedAt": apptest.LongPast,
	}, told[0]["entry"])
}

func postsStayOpen(t *testing.T, n *tenant) {
	posts := n.NewPosts(t, 1)
	before := n.Get(t, "/v1/posts/"+posts[0].(string))
	entry := n.changelogEntry(t, object{"title": "x"})
	n.put(t, entry+"/linked-posts", object{"postIds": posts})
	n.Patch(t, entry, object{"publishedAt": apptest.LongPast})
	require.Equal(t, before, n.Get(t, "/v1/posts/"+posts[0].(string)))
}

func momentKept(t *testing.T, n *tenant) {
	for sent, kept := range map[string]string{
		"2020-05-17T12:11:12+02:00":           apptest.LongPast,
		"2020-05-17T10:11:12.123456Z":         "2020-05-17T10:11:12.123456Z",
		"2020-05-17T00:41:12.1234569-09:30":   "2020-05-17T10:11:12.123456Z",
		"2100-01-01T02:00:00.000001+02:00":    "2100-01-01T00:00:00.000001Z",
		"0001-01-01T00:00:00Z":                "0001-01-01T00:00:00Z",
		"1969-12-31T23:59:59.999999999Z":      "1969-12-31T23:59:59.999999Z",
		"9999-12-31T23:59:59.999999Z":         "9999-12-31T23:59:59.999999Z",
		"9999-12-31T23:59:59.999999999+00:00": "9999-12-31T23:59:59.999999Z",
	} {
		made := n.Get(t, n.changelogEntry(t, object{"title": "x", "publishedAt": sent}))
		require.Equal(t, kept, made["publishedAt"], sent)
		patched := n.changelogEntry(t, object{"title": "x"})
		require.Equal(t, kept, n.Patch(t, patched, object{"publishedAt": sent})["publishedAt"])
		again := n.Patch(t, patched, object{"publishedAt": sent})
		require.Equal(t, again, n.Get(t, patched))
		require.Equal(t, again["updatedAt"], n.Patch(t, patched, object{"publishedAt": sent})["updatedAt"], "the same instant again")
	}
}

func badMoments(t *testing.T, n *tenant) {
	board := n.Board(t) + "/changelog"
	entry := "/v1/changelog/" + n.ID(t, board, object{"title": "x"})
	for _, at := range []any{
		"0000-06-01T00:00:00Z", "0001-01-01T00:30:00+01:00", "10000-01-01T00:00:00Z", "9999-12-31T23:30:00-01:00",
		"2026-02-30T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "tomorrow", "", 0, false, object{},
	} {
		for method, path := range map[string]string{http.MethodPost: board, http.MethodPatch: entry} {
			a := n.Refused(t, "ERR_VALIDATION", method, path, object{"title": "y", "publishedAt": at})
			require.Equal(t, []string{"publishedAt"}, a.Fields(), "%s %v", method, at)
		}
	}
}

// overdueEntry makes an entry whose publication time has passed unnoticed, because no worker runs
// in these tests.
func (n *tenant) overdueEntry(t *testing.T) (path string, id publicid.ChangelogEntry) {
	t.Helper()
	path = n.changelogEntry(t, object{"title": "Faster search", "publishedAt": apptest.FarAway})
	id, err := publicid.Parse[publicid.ChangelogEntry](strings.TrimPrefix(path, "/v1/changelog/"))
	require.NoError(t, err)
	n.App.Store.Client().ChangelogEntry.UpdateOneID(id).SetPublishedAt(n.Owner.CreatedAt).ExecX(n.Context(t.Context()))
	return path, id
}

func publishedOnSchedule(t *testing.T, n *tenant) {
	n.Listen(t)
	entry, id := n.overdueEntry(t)
	for range 2 {
		due, err := n.App.Feedback.PublishEntry(t.Context(), id)
		require.NoError(t, err)
		require.Nil(t, due)
	}
	read := n.Get(t, entry)
	require.Equal(t, "published", read["state"])
	require.Equal(t, []object{{
		"event": "changelog.published", "organizationId": n.Organization.ID.String(), "boardId": read["boardId"],
		"entry": object{"id": read["id"], "title": "Faster search", "slug": "faster-search", "publishedAt": read["publishedAt"]},
	}}, n.Payloads(t, event.ChangelogPublished))
	n.Patch(t, entry, object{"publishedAt": apptest.LongPast})
	require.Len(t, n.Recorded(t), 1, "it was published already")
}

func publishedUnpaid(t *testing.T, n *tenant) {
	n.Listen(t)
	entry, id := n.overdueEntry(t)
	n.App.Store.Client().Organization.Update().SetBillingState("read_only").ExecX(n.Context(t.Context()))
	_, err := n.App.Feedback.PublishEntry(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "published", n.Get(t, entry)["state"])
	require.Len(t, n.Recorded(t), 1)
}

func nothingToPublish(t *testing.T, n *tenant) {
	n.Listen(t)
	scheduled, id := n.overdueEntry(t)
	n.Patch(t, scheduled, object{"publishedAt": apptest.FarAway})
	due, err := n.App.Feedback.PublishEntry(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, apptest.FarAway, due.UTC().Format("2006-01-02T15:04:05Z"))
	draft, drafted := n.overdueEntry(t)
	n.Patch(t, draft, object{"publishedAt": nil})
	gone, deleted := n.overdueEntry(t)
	n.Make(t, http.MethodDelete, gone, nil)
	unchanged := n.Watch(t)
	for _, id := range []publicid.ChangelogEntry{drafted, deleted, publicid.NewChangelogEntry()} {
		due, err := n.App.Feedback.PublishEntry(t.Context(), id)
		require.NoError(t, err)
		require.Nil(t, due)
	}
	unchanged(t)
}

// The publication time has passed, but the worker is late.
func setAgainWhenDue(t *testing.T, n *tenant) {
	n.Listen(t)
	entry, _ := n.overdueEntry(t)
	due := n.Get(t, entry)
	require.Equal(t, "scheduled", due["state"])
	require.Equal(t, "published", n.Patch(t, entry, object{"publishedAt": due["publishedAt"]})["state"],
		"a moment that is past publishes at once, in any state")
	require.Len(t, n.Recorded(t), 1)
}

func replaceLinks(t *testing.T, n *tenant) {
	p := n.NewPosts(t, 3)
	entry := n.changelogEntry(t, object{"title": "x"})
	for _, test := range []struct{ sent, kept []any }{
		{[]any{p[1], p[0]}, []any{p[1], p[0]}},
		{[]any{p[0], p[1]}, []any{p[0], p[1]}},
		{[]any{p[2], p[0], p[2], p[1], p[0]}, []any{p[2], p[0], p[1]}},
		{[]any{p[1]}, []any{p[1]}},
	} {
		before := n.Get(t, entry)
		a := n.Do(t, http.MethodPut, entry+"/linked-posts", object{"postIds": test.sent})
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		require.Equal(t, test.kept, a.Data()["postIds"])
		apptest.Later(t, a.Data(), before, "updatedAt")
		require.Equal(t, apptest.Without(before, "postIds", "updatedAt"), apptest.Without(a.Data(), "postIds", "updatedAt"))
		require.Equal(t, a.Data(), n.Get(t, entry))
	}
}

func clearLinks(t *testing.T, n *tenant) {
	entry := n.changelogEntry(t, object{"title": "x"})
	n.put(t, entry+"/linked-posts", object{"postIds": n.NewPosts(t, 2)})
	for _, body := range []any{object{}, object{"postIds": nil}, object{"postIds": ""}, `{"postIds":{}}`} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPut, entry+"/linked-posts", body)
		require.Equal(t, []string{"postIds"}, a.Fields(), "%v", body)
	}
	require.Equal(t, []any{}, n.put(t, entry+"/linked-posts", object{"postIds": []any{}})["postIds"])
	require.Equal(t, []any{}, n.Get(t, entry)["postIds"])
}

func sameLinks(t *testing.T, n *tenant) {
	p := n.NewPosts(t, 2)
	for _, links := range [][]any{{p[1], p[0]}, {}} {
		entry := n.changelogEntry(t, object{"title": "x"})
		first := n.put(t, entry+"/linked-posts", object{"postIds": links})
		unchanged := n.Watch(t)
		require.Equal(t, first, n.put(t, entry+"/linked-posts", object{"postIds": links}))
		require.Equal(t, first, n.put(t, entry+"/linked-posts", object{"postIds": append(slices.Clone(links), links...)}))
		unchanged(t)
	}
}

func linksAcrossBoards(t *testing.T, n *tenant) {
	links := slices.Concat(n.NewPosts(t, 1), n.NewPosts(t, 1))
	entry := n.changelogEntry(t, object{"title": "x"})
	require.Equal(t, links, n.put(t, entry+"/linked-posts", object{"postIds": links})["postIds"])
}

func hundredLinks(t *testing.T, n *tenant) {
	p := n.NewPosts(t, 101)
	entry := n.changelogEntry(t, object{"title": "x"})
	require.Equal(t, p[:100], n.put(t, entry+"/linked-posts", object{"postIds": p[:100]})["postIds"])
	slices.Reverse(p)
	require.Equal(t, p[:100], n.put(t, entry+"/linked-posts", object{"postIds": p[:100]})["postIds"])
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPut, entry+"/linked-posts", object{"postIds": p})
	require.Equal(t, []string{"postIds"}, a.Fields())
}

func linksToNowhere(t *testing.T, n *tenant) {
	p := n.NewPosts(t, 3)
	n.Make(t, http.MethodDelete, "/v1/posts/"+p[2].(string), nil)
	entry := n.changelogEntry(t, object{"title": "x"})
	n.put(t, entry+"/linked-posts", object{"postIds": p[:1]})
	for why, id := range map[string]any{
		"deleted": p[2], "unknown": publicid.NewPost().String(), "foreign": n.on(t, "business").NewPosts(t, 1)[0],
		"no id": "x", "of another kind": strings.TrimPrefix(entry, "/v1/changelog/"),
	} {
		a := n.Refused(t, "ERR_NOT_FOUND", http.MethodPut, entry+"/linked-posts", object{"postIds": []any{p[1], id}})
		require.Equal(t, "postIds", a.Details()["field"], why)
	}
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPut, entry+"/linked-posts", object{"postIds": []any{p[1], ""}})
	require.Equal(t, []string{"postIds[1]"}, a.Fields(), "%s", a.Raw)
}

func linkedPostDeleted(t *testing.T, n *tenant) {
	p := n.NewPosts(t, 3)
	entry := n.changelogEntry(t, object{"title": "x"})
	n.put(t, entry+"/linked-posts", object{"postIds": p})
	n.Make(t, http.MethodDelete, "/v1/posts/"+p[1].(string), nil)
	require.Equal(t, []any{p[0], p[2]}, n.Get(t, entry)["postIds"])
	again := n.Patch(t, entry, n.Get(t, entry))
	require.Equal(t, []any{p[0], p[2]}, again["postIds"], "what is left can be sent back")
	require.Equal(t, []any{p[2], p[0]}, n.put(t, entry+"/linked-posts", object{"postIds": []any{p[2], p[0]}})["postIds"])
}
