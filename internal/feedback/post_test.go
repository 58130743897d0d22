package feedback_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

func TestAPost(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"starts open, by the caller, without votes":          newPost,
		"keeps its document as it was sent":                  documentAsSent,
		"shows its tags oldest first, each once":             tagsInOrder,
		"changes in the members that are sent and no others": patchEach,
		"is replaced in its body as a whole":                 patchBody,
		"loses its contact with null and keeps it without":   patchContact,
		"sent back as it was read doesn't change":            sentBack,
		"tells the status that it left":                      statusChanged,
		"may go from any status to any other but duplicate":  anyStatus,
		"becomes a duplicate by a merge only":                onlyMergesDuplicate,
		"tells nothing when it is changed in something else": quietChanges,
		"is refused a slug that another of its board has":    takenSlug,
		"is refused with every failure of a patch at once":   badPatch,
		"counts for its contact exactly":                     postCount,
		"names its contact by your own id":                   contactByOwnID,
		"is refused for names that are not one contact":      badContacts,
	})
}

func contactByOwnID(t *testing.T, n *tenant) {
	board := n.Board(t)
	ada := n.Identify(t, object{"externalUserId": "ada"})["id"]
	known := n.Make(t, http.MethodPost, board+"/posts", object{"title": "Known", "externalUserId": "ada"})
	require.Equal(t, ada, known["contactId"])
	fresh := n.Make(t, http.MethodPost, board+"/posts", object{"title": "New", "externalUserId": "bo", "createContact": true})
	require.Equal(t, "bo", n.Get(t, "/v1/contacts/"+fresh["contactId"].(string))["externalUserId"])
	post := "/v1/posts/" + fresh["id"].(string)
	require.Equal(t, ada, n.Patch(t, post, object{"externalUserId": "ada"})["contactId"])
	third := n.Patch(t, post, object{"externalUserId": "cleo", "createContact": true})["contactId"].(string)
	require.Equal(t, "cleo", n.Get(t, "/v1/contacts/"+third)["externalUserId"])
	unchanged := n.Watch(t)
	require.Equal(t, third, n.Patch(t, post, object{"externalUserId": "cleo"})["contactId"])
	unchanged(t)
}

func badContacts(t *testing.T, n *tenant) {
	board, post := n.Board(t), n.Post(t)
	ada := n.Identify(t, object{"externalUserId": "ada"})["id"]
	unchanged := n.Watch(t)
	for method, path := range map[string]string{http.MethodPost: board + "/posts", http.MethodPatch: post} {
		for rule, body := range map[string]object{
			"externalUserId either":   {"title": "x", "contactId": ada, "externalUserId": "ada"},
			"externalUserId required": {"title": "x", "createContact": true},
		} {
			require.Equal(t, []string{rule}, apptest.FieldRules(n.Refused(t, "ERR_VALIDATION", method, path, body)), method)
		}
		a := n.Refused(t, "ERR_NOT_FOUND", method, path, object{"title": "x", "externalUserId": "nobody"})
		require.Equal(t, "externalUserId", a.Details()["field"], method)
	}
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, post, object{"contactId": nil, "externalUserId": "ada"})
	require.Equal(t, []string{"externalUserId either"}, apptest.FieldRules(a))
	unchanged(t)
}

func newPost(t *testing.T, n *tenant) {
	board := n.Board(t)
	contact := n.Identify(t, object{"externalUserId": "u-1"})["id"]
	tag := n.ID(t, board+"/tags", object{"name": "Mobile"})
	made := n.Make(t, http.MethodPost, board+"/posts", object{
		"title": "  Dark mode ", "body": object{"text": "Please."}, "contactId": contact, "tagIds": []string{tag},
	})
	require.Equal(t, object{
		"organizationId": n.Organization.ID.String(), "boardId": strings.TrimPrefix(board, "/v1/boards/"),
		"title": "Dark mode", "slug": "dark-mode", "status": "open", "body": object{"json": nil, "text": "Please."},
		"contactId": contact, "authorUserId": n.Owner.ID.String(), "hideFromRoadmap": false, "tagIds": []any{tag},
		"voteCount": json.Number("0"), "commentCount": json.Number("0"), "mergedIntoId": nil,
	}, apptest.Without(made, "id", "createdAt", "updatedAt", "lastActivityAt"))
	require.Equal(t, made["createdAt"], made["updatedAt"])
	require.Equal(t, made["createdAt"], made["lastActivityAt"])
	at, err := time.Parse(time.RFC3339Nano, made["createdAt"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	require.Equal(t, made, n.Get(t, "/v1/posts/"+made["id"].(string)))
}

func documentAsSent(t *testing.T, n *tenant) {
	for _, document := range []string{
		`{"z":9007199254740993,"a":1.50,"e":1e400,"nul":"\u0000"}`, `[]`, `"text"`, `17`, `true`,
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
	} {
		a := n.Do(t, http.MethodPost, n.Board(t)+"/posts", `{"title":"x","body":{"json":`+document+`,"text":"y"}}`)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
		require.Contains(t, string(a.Raw), `"body":{"json":`+document+`,"text":"y"}`)
		read := n.Do(t, http.MethodGet, "/v1/posts/"+a.Data()["id"].(string), nil)
		require.Equal(t, string(a.Raw), string(read.Raw))
	}
}

func tagsInOrder(t *testing.T, n *tenant) {
	board := n.Board(t)
	var tags []any
	for _, name := range []string{"c", "a", "b"} {
		tags = append(tags, n.ID(t, board+"/tags", object{"name": name}))
	}
	mixed := []any{tags[2], tags[0], tags[2], tags[1]}
	made := n.Make(t, http.MethodPost, board+"/posts", object{"title": "x", "tagIds": mixed})
	require.Equal(t, tags, made["tagIds"])
	post := "/v1/posts/" + made["id"].(string)
	require.Equal(t, made, n.Get(t, post))
	require.Equal(t, tags[1:], n.Patch(t, post, object{"tagIds": []any{tags[2], tags[1], tags[2]}})["tagIds"])
}

func patchEach(t *testing.T, n *tenant) {
	board := n.Board(t)
	tag := n.ID(t, board+"/tags", object{"name": "Mobile"})
	contact := n.Identify(t, object{"externalUserId": "u-1"})["id"]
	made := n.Make(t, http.MethodPost, board+"/posts", object{"title": "Dark mode", "body": object{"text": "Please."}})
	post := "/v1/posts/" + made["id"].(string)
	for _, change := range []object{
		{"title": "Night mode"},
		{"slug": "night-mode"},
		{"status": "planned"},
		{"body": object{"json": object{"type": "doc"}, "text": "Now."}},
		{"hideFromRoadmap": true},
		{"tagIds": []any{tag}},
		{"contactId": contact},
		{"title": "Dimmed", "status": "shipped", "tagIds": []any{}, "hideFromRoadmap": false},
	} {
		before := n.Get(t, post)
		got := n.Patch(t, post, change)
		for name, value := range change {
			require.Equal(t, value, got[name], name)
			before[name] = value
		}
		require.Greater(t, got["updatedAt"], before["updatedAt"])
		require.Equal(t, got["updatedAt"], got["lastActivityAt"])
		before["updatedAt"], before["lastActivityAt"] = got["updatedAt"], got["lastActivityAt"]
		require.Equal(t, before, got)
		require.Equal(t, got, n.Get(t, post))
	}
	require.Equal(t, "Trimmed", n.Patch(t, post, object{"title": " Trimmed "})["title"])
}

func patchBody(t *testing.T, n *tenant) {
	post := n.Post(t)
	full := object{"json": object{"type": "doc"}, "text": "both"}
	for _, test := range []struct{ body, want object }{
		{object{"text": "only text"}, object{"json": nil, "text": "only text"}},
		{object{"json": []any{}}, object{"json": []any{}, "text": ""}},
		{object{"json": nil, "text": "x"}, object{"json": nil, "text": "x"}},
		{object{}, object{"json": nil, "text": ""}},
	} {
		require.Equal(t, full, n.Patch(t, post, object{"body": full})["body"])
		require.Equal(t, test.want, n.Patch(t, post, object{"body": test.body})["body"])
		require.Equal(t, test.want, n.Get(t, post)["body"])
	}
}

func patchContact(t *testing.T, n *tenant) {
	post := n.Post(t)
	contact := n.Identify(t, object{"externalUserId": "u-1"})["id"]
	require.Equal(t, contact, n.Patch(t, post, object{"contactId": contact})["contactId"])
	require.Equal(t, contact, n.Patch(t, post, object{"status": "planned"})["contactId"])
	require.Nil(t, n.Patch(t, post, object{"contactId": nil})["contactId"])
}

func sentBack(t *testing.T, n *tenant) {
	board := n.Board(t)
	made := n.Do(t, http.MethodPost, board+"/posts",
		`{"title":"Dark mode","body":{"json":{"z": 1.0, "a": ["<é\u00e9>", null]},"text":"x"},"tagIds":["`+n.ID(t, board+"/tags", object{"name": "b"})+`"]}`)
	post := "/v1/posts/" + made.Data()["id"].(string)
	read := n.Get(t, post)
	n.Listen(t)
	unchanged := n.Watch(t)
	require.Equal(t, read, n.Patch(t, post, read))
	require.Equal(t, read, n.Patch(t, post, object{}))
	unchanged(t)
}

func statusChanged(t *testing.T, n *tenant) {
	post := n.Post(t)
	hook := n.Listen(t)
	now := n.Patch(t, post, object{"status": "in_progress", "title": "Night mode", "slug": "night-mode"})
	told := n.Payloads(t, event.PostStatusChanged)
	require.Equal(t, []object{{
		"event": "post.status_changed", "organizationId": n.Organization.ID.String(), "boardId": now["boardId"],
		"post": object{
			"id": now["id"], "title": "Night mode", "slug": "night-mode", "status": "in_progress", "createdAt": now["createdAt"],
		},
		"previousStatus": "open",
	}}, told)
	n.Patch(t, post, object{"status": "in_progress"})
	require.Len(t, n.Recorded(t), 1, "the status that it has already is no change")
	require.Len(t, n.Walk(t, "/v1/webhooks/"+hook+"/deliveries", "1", func() {}), 1)
}

func anyStatus(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Listen(t, event.PostStatusChanged)
	all := []string{"open", "under_review", "planned", "in_progress", "shipped", "declined"}
	var want []string
	last := "open"
	for _, from := range all {
		for _, to := range all {
			for _, next := range []string{from, to} {
				require.Equal(t, next, n.Patch(t, post, object{"status": next})["status"])
				if next != last {
					want, last = append(want, last+" to "+next), next
				}
			}
		}
	}
	var told []string
	for _, p := range n.Payloads(t, event.PostStatusChanged) {
		told = append(told, p["previousStatus"].(string)+" to "+p["post"].(object)["status"].(string))
	}
	require.Equal(t, want, told)
}

func onlyMergesDuplicate(t *testing.T, n *tenant) {
	post := n.Post(t)
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, post, object{"title": "Night mode", "status": "duplicate"})
	require.Equal(t, []string{"status merge"}, apptest.FieldRules(a))
	require.Contains(t, string(a.Raw), "POST /v1/posts/{id}/merge")
}

func quietChanges(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Listen(t)
	n.Patch(t, post, object{"title": "Night mode", "body": object{"text": "x"}, "hideFromRoadmap": true, "status": "open"})
	require.Empty(t, n.Recorded(t))
}

func takenSlug(t *testing.T, n *tenant) {
	board := n.Board(t)
	n.ID(t, board+"/posts", object{"title": "Dark mode"})
	post := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "Night mode"})
	n.Listen(t)
	a := n.Refused(t, "ERR_CONFLICT", http.MethodPatch, post, object{"slug": "dark-mode", "status": "planned"})
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, "slug", a.Details()["field"])
	require.Equal(t, "dark-mode", n.Patch(t, n.Post(t), object{"slug": "dark-mode"})["slug"], "another board")
}

func badPatch(t *testing.T, n *tenant) {
	post := n.Post(t)
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, post, object{
		"title": " ", "slug": "A B", "status": "done", "contactId": "", "tagIds": []any{"", 1},
		"body": object{"text": strings.Repeat("x", 50_001)},
	})
	require.Equal(t, []string{"body.text", "contactId", "slug", "status", "tagIds[0]", "tagIds[1]", "title"}, a.Fields())
	// These rules are checked after those of the contract.
	a = n.Refused(t, "ERR_VALIDATION", http.MethodPatch, post, object{
		"title": "\x00", "body": object{"text": "\x00", "json": strings.Repeat("x", 256<<10)},
	})
	require.Equal(t, []string{"title", "body.text", "body.json"}, a.Fields())
}

func postCount(t *testing.T, n *tenant) {
	contact := n.Identify(t, object{"externalUserId": "u-1"})["id"].(string)
	board := n.Board(t)
	var posts []string
	for range 3 {
		posts = append(posts, "/v1/posts/"+n.ID(t, board+"/posts", object{"title": "x", "contactId": contact}))
	}
	n.Patch(t, posts[0], object{"contactId": nil})
	require.Equal(t, json.Number("2"), n.Get(t, "/v1/contacts/"+contact)["postCount"])
}

func TestAPostThatIsDeleted(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is gone for every operation":                 postGone,
		"is in no list and found by no search":        postUnlisted,
		"leaves the changelog entries that linked it": postUnlinked,
		"leaves its slug to others":                   slugLeft,
		"counts no more for its contact":              postUncounted,
		"is deleted without an event":                 deletedQuietly,
	})
}

func postGone(t *testing.T, n *tenant) {
	board := n.Board(t)
	id, other := n.ID(t, board+"/posts", object{"title": "x"}), "/v1/posts/"+n.ID(t, board+"/posts", object{"title": "y"})
	post := "/v1/posts/" + id
	comment := n.Comment(t, post, "")
	entry := "/v1/changelog/" + n.ID(t, board+"/changelog", object{"title": "x"})
	n.ID(t, post+"/votes", nil)
	require.Equal(t, object{"id": id}, n.Make(t, http.MethodDelete, post, nil))
	n.Listen(t)
	for _, r := range []struct{ method, path, field string }{
		{http.MethodGet, post, ""},
		{http.MethodPatch, post, ""},
		{http.MethodDelete, post, ""},
		{http.MethodPost, post + "/merge", ""},
		{http.MethodPost, other + "/merge", "sourceIds"},
		{http.MethodGet, post + "/votes", ""},
		{http.MethodPost, post + "/votes", ""},
		{http.MethodDelete, post + "/votes", ""},
		{http.MethodGet, post + "/comments", ""},
		{http.MethodPost, post + "/comments", ""},
		{http.MethodPatch, "/v1/comments/" + comment, ""},
		{http.MethodDelete, "/v1/comments/" + comment, ""},
		{http.MethodPut, entry + "/linked-posts", "postIds"},
	} {
		source := id
		if r.path == post+"/merge" {
			source = strings.TrimPrefix(other, "/v1/posts/")
		}
		body := bodyOf(r.method)
		switch {
		case strings.HasSuffix(r.path, "/merge"):
			body = object{"sourceIds": []string{source}}
		case r.method == http.MethodPut:
			body = object{"postIds": []string{id}}
		case strings.HasSuffix(r.path, "/votes"):
			body = nil
		}
		a := n.Refused(t, "ERR_NOT_FOUND", r.method, r.path, body)
		require.Equal(t, r.field, orEmptyText(a.Details()["field"]), "%s %s", r.method, r.path)
	}
}

// orEmptyText returns "" for a missing value.
func orEmptyText(v any) string { s, _ := v.(string); return s }

func postUnlisted(t *testing.T, n *tenant) {
	board := n.Board(t)
	contact := n.Identify(t, object{"externalUserId": "u-1"})["id"].(string)
	kept := n.ID(t, board+"/posts", object{"title": "Dark mode", "contactId": contact})
	gone := n.ID(t, board+"/posts", object{"title": "Dark theme", "contactId": contact})
	n.Make(t, http.MethodDelete, "/v1/posts/"+gone, nil)
	for _, path := range []string{
		board + "/posts", board + "/posts?sort=votes", board + "/posts?sort=active", board + "/posts?status=open",
		board + "/posts?contactId=" + contact, board + "/posts?q=dark", board + "/posts?q=dark&sort=newest",
		"/v1/contacts/" + contact + "/posts",
	} {
		require.Equal(t, []string{kept}, n.shown(t, path, "id"), path)
	}
}

func postUnlinked(t *testing.T, n *tenant) {
	board := n.Board(t)
	var posts []any
	for range 3 {
		posts = append(posts, n.ID(t, board+"/posts", object{"title": "x"}))
	}
	entry := "/v1/changelog/" + n.ID(t, n.Board(t)+"/changelog", object{"title": "x"})
	n.Make(t, http.MethodPut, entry+"/linked-posts", object{"postIds": posts})
	n.Make(t, http.MethodDelete, "/v1/posts/"+posts[1].(string), nil)
	require.Equal(t, []any{posts[0], posts[2]}, n.Get(t, entry)["postIds"])
}

func slugLeft(t *testing.T, n *tenant) {
	board := n.Board(t)
	first := n.Make(t, http.MethodPost, board+"/posts", object{"title": "Dark mode"})
	other := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "Night mode"})
	for range 2 {
		n.Make(t, http.MethodDelete, "/v1/posts/"+first["id"].(string), nil)
		first = n.Make(t, http.MethodPost, board+"/posts", object{"title": "Dark mode"})
		require.Equal(t, "dark-mode", first["slug"])
	}
	n.Make(t, http.MethodDelete, "/v1/posts/"+first["id"].(string), nil)
	require.Equal(t, "dark-mode", n.Patch(t, other, object{"slug": "dark-mode"})["slug"])
}

func postUncounted(t *testing.T, n *tenant) {
	contact := n.Identify(t, object{"externalUserId": "u-1"})["id"].(string)
	post := "/v1/posts/" + n.ID(t, n.Board(t)+"/posts", object{"title": "x", "contactId": contact})
	n.Make(t, http.MethodDelete, post, nil)
	require.Equal(t, json.Number("0"), n.Get(t, "/v1/contacts/"+contact)["postCount"])
}

func deletedQuietly(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Listen(t)
	n.Make(t, http.MethodDelete, post, nil)
	require.Empty(t, n.Recorded(t))
}
