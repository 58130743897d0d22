package feedback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/comment"
	"earshot/ent/db/user"
	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestACommentAndAVote(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"a comment is the caller's and counts on its post":               newComment,
		"a reply answers a comment":                                      reply,
		"a comment is read by its id, as long as its post is there":      readComment,
		"a reply to a reply is refused":                                  replyToReply,
		"a comment's text has 1 to 50,000 characters":                    commentLimits,
		"a vote is put once and told once":                               castTwice,
		"a vote that is taken can be put again":                          retract,
		"every member of an organization has one vote":                   voteOfEachMember,
		"a vote that isn't there can be taken, as often as you like":     retractNothing,
		"both of the public flow count for the contact with the address": countsByAddress,
		"a post that was deleted takes neither":                          deletedPost,
	})
}

func newComment(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Listen(t)
	a := n.Do(t, http.MethodPost, post+"/comments", `{"body":{"json":{"z":1.0,"a":[]},"text":" Me too. "},"parentId":null}`)
	require.Equal(t, http.StatusCreated, a.Status)
	made := a.Data()
	require.Equal(t, object{
		"postId": strings.TrimPrefix(post, "/v1/posts/"), "parentId": nil, "authorUserId": n.Owner.ID.String(), "contactId": nil,
		"body":      object{"json": object{"z": json.Number("1.0"), "a": []any{}}, "text": " Me too. "},
		"deletedAt": nil,
	}, apptest.Without(made, "id", "createdAt", "updatedAt"))
	require.Equal(t, json.Number("1"), n.Get(t, post)["commentCount"])
	require.Equal(t, []object{{
		"event": "comment.created", "organizationId": n.Organization.ID.String(), "boardId": n.Get(t, post)["boardId"],
		"comment": object{
			"id": made["id"], "postId": made["postId"], "parentId": nil, "authorUserId": n.Owner.ID.String(),
			"bodyText": " Me too. ", "createdAt": made["createdAt"],
		},
	}}, n.Payloads(t, event.CommentCreated))
}

func reply(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Listen(t)
	top := n.Comment(t, post, "")
	n.Comment(t, post, top)
	told := n.Payloads(t, event.CommentCreated)
	require.Len(t, told, 2)
	require.Equal(t, top, told[1]["comment"].(object)["parentId"])
	require.Equal(t, json.Number("2"), n.Get(t, post)["commentCount"])
}

func readComment(t *testing.T, n *tenant) {
	post := n.Post(t)
	id := n.Comment(t, post, n.Comment(t, post, ""))
	path := "/v1/comments/" + id
	inList := func() any { return n.Do(t, http.MethodGet, post+"/comments", nil).Body["data"].([]any)[1] }
	require.Equal(t, inList(), any(n.Get(t, path)))
	n.Make(t, http.MethodDelete, path, nil)
	tombstone := n.Get(t, path)
	require.Equal(t, inList(), any(tombstone))
	require.NotNil(t, tombstone["deletedAt"])
	require.Nil(t, tombstone["body"])
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, "/v1/comments/"+publicid.NewComment().String(), nil)
	require.Equal(t, "ERR_NOT_FOUND", n.on(t, "business").Do(t, http.MethodGet, path, nil).Code())
	n.Make(t, http.MethodDelete, post, nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, path, nil)
}

func replyToReply(t *testing.T, n *tenant) {
	post := n.Post(t)
	second := n.Comment(t, post, n.Comment(t, post, ""))
	n.Listen(t)
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, post+"/comments", object{"body": object{"text": "x"}, "parentId": second})
	require.Equal(t, []string{"parentId"}, a.Fields())
}

func commentLimits(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Make(t, http.MethodPost, post+"/comments", object{"body": object{"text": strings.Repeat("é", 50_000)}})
	for why, body := range map[string]object{
		"no text":          {"json": object{}},
		"empty":            {"text": ""},
		"one too many":     {"text": strings.Repeat("é", 50_001)},
		"too long by NULs": {"text": "\x00"},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, post+"/comments", object{"body": body})
		require.Equal(t, []string{"body.text"}, a.Fields(), why)
	}
}

func castTwice(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Listen(t)
	first := n.Do(t, http.MethodPost, post+"/votes", nil)
	require.Equal(t, http.StatusCreated, first.Status)
	require.Equal(t, n.Owner.ID.String(), first.Data()["userId"])
	unchanged := n.Watch(t)
	again := n.Do(t, http.MethodPost, post+"/votes", nil)
	require.Equal(t, http.StatusOK, again.Status)
	require.Equal(t, first.Data(), again.Data())
	unchanged(t)
	read := n.Get(t, post)
	require.Equal(t, json.Number("1"), read["voteCount"])
	require.Equal(t, []object{{
		"event": "vote.created", "organizationId": n.Organization.ID.String(), "boardId": read["boardId"], "vote": apptest.Without(first.Data(), "contactId"),
	}}, n.Payloads(t, event.VoteCreated))
}

func retract(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Listen(t)
	vote := n.ID(t, post+"/votes", nil)
	taken := n.Do(t, http.MethodDelete, post+"/votes", nil)
	require.Equal(t, http.StatusOK, taken.Status)
	require.Equal(t, object{"id": vote, "postId": strings.TrimPrefix(post, "/v1/posts/")}, taken.Data())
	require.Equal(t, json.Number("0"), n.Get(t, post)["voteCount"])
	require.Len(t, n.Recorded(t), 1, "taking a vote is no event")
	require.NotEqual(t, vote, n.ID(t, post+"/votes", nil))
	require.Len(t, n.Recorded(t), 2)
}

func voteOfEachMember(t *testing.T, n *tenant) {
	post := n.Post(t)
	member := n.App.Store.Client().User.Create().SetEmail("second@example.com").SetName("Second").SetRole(user.RoleOwner).SaveX(n.Context(t.Context()))
	n.ID(t, post+"/votes", nil)
	second := n.as(t, member)
	require.Equal(t, http.StatusCreated, second.Do(t, http.MethodPost, post+"/votes", nil).Status)
	require.Equal(t, json.Number("2"), n.Get(t, post)["voteCount"])
	second.Make(t, http.MethodDelete, post+"/votes", nil)
	require.Equal(t, json.Number("1"), n.Get(t, post)["voteCount"])
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodPost, post+"/votes", nil).Status, "the first one's is still there")
}

func retractNothing(t *testing.T, n *tenant) {
	post := n.Post(t)
	unchanged := n.Watch(t)
	for range 2 {
		a := n.Do(t, http.MethodDelete, post+"/votes", nil)
		require.Equal(t, http.StatusOK, a.Status)
		require.Nil(t, a.Data()["id"])
	}
	unchanged(t)
}

// The public flow, which stores hashes of addresses, is not part of the API.
func countsByAddress(t *testing.T, n *tenant) {
	contact := n.Identify(t, object{"externalUserId": "u-1"})["id"].(string)
	counts := func() string {
		c := n.Get(t, "/v1/contacts/"+contact)
		return fmt.Sprint(c["voteCount"], " ", c["commentCount"])
	}
	n.ID(t, n.Post(t)+"/votes", nil)
	require.Equal(t, "0 0", counts(), "votes without an address are nobody's")
	n.Identify(t, object{"externalUserId": "u-1", "email": "Ada@Example.com"})
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	hash := *client.Contact.Query().OnlyX(ctx).EmailHash
	require.NotContains(t, string(hash), "ada")
	on := client.Post.Query().OnlyX(ctx).ID
	client.Vote.Create().SetPostID(on).SetEmailHash(hash).ExecX(ctx)
	for range 2 {
		client.Comment.Create().SetPostID(on).SetEmailHash(hash).SetBodyText("x").ExecX(ctx)
	}
	client.Comment.Create().SetPostID(on).SetEmailHash(hash).SetDeletedAt(n.Owner.CreatedAt).ExecX(ctx)
	require.Equal(t, "1 2", counts())
	stranger := n.on(t, "business")
	theirs := stranger.Identify(t, object{"externalUserId": "u-1", "email": "ada@example.com"})["id"].(string)
	require.Equal(t, json.Number("0"), stranger.Get(t, "/v1/contacts/"+theirs)["voteCount"])
}

func deletedPost(t *testing.T, n *tenant) {
	path := n.Post(t)
	n.App.Store.Client().Post.Update().SetDeletedAt(n.Owner.CreatedAt).ExecX(n.Context(t.Context()))
	for _, r := range []struct{ method, path string }{
		{http.MethodGet, path}, {http.MethodPatch, path}, {http.MethodPost, path + "/comments"},
	} {
		n.Refused(t, "ERR_NOT_FOUND", r.method, r.path, object{"body": object{"text": "x"}})
	}
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, path+"/votes", nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, path+"/votes", nil)
}

func TestAThreadOfComments(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is walked from end to end while it grows":                   commentsWalked,
		"has each reply behind its parent, the oldest first":         commentThreads,
		"keeps its order on pages of any size":                       commentPages,
		"shows comments as they were made":                           commentsAsMade,
		"keeps a tombstone where a comment was deleted":              tombstone,
		"goes on under a tombstone":                                  replyToTombstone,
		"counts the comments that aren't deleted":                    commentCounts,
		"loses a comment once":                                       deletedTwice,
		"is of one post":                                             commentsOfOnePost,
		"refuses limits and cursors that aren't its own":             badCommentPages,
		"takes replies to comments of its own post only":             foreignParents,
		"isn't there for another organization":                       foreignComments,
		"ends with its post":                                         commentsOfDeletedPost,
		"is no event when it is edited or loses a comment":           quietComments,
		"keeps nothing of the body and the author of a deleted one":  nothingKept,
		"moves its post to the top of activity, a lost one does not": commentActivity,
	})
}

func commentsWalked(t *testing.T, n *tenant) {
	post := n.Post(t)
	walks(t, n, list{post + "/comments", func(int) string { return n.Comment(t, post, "") }, false, 25, false})
}

// threads makes three threads with 2, 0 and 3 replies in a mixed order, and returns their ids in
// the order of the list.
func (n *tenant) threads(t *testing.T, post string) (inOrder []string) {
	t.Helper()
	a, b := n.Comment(t, post, ""), n.Comment(t, post, "")
	a1 := n.Comment(t, post, a)
	c := n.Comment(t, post, "")
	c1, a2, c2 := n.Comment(t, post, c), n.Comment(t, post, a), n.Comment(t, post, c)
	return []string{a, a1, a2, b, c, c1, c2, n.Comment(t, post, c)}
}

func commentThreads(t *testing.T, n *tenant) {
	post := n.Post(t)
	want := n.threads(t, post)
	require.Equal(t, want, n.shown(t, post+"/comments", "id"))
	late := n.Comment(t, post, want[3])
	require.Equal(t, slices.Insert(want, 4, late), n.shown(t, post+"/comments", "id"))
}

func commentPages(t *testing.T, n *tenant) {
	post := n.Post(t)
	want := n.threads(t, post)
	n.Make(t, http.MethodDelete, "/v1/comments/"+want[0], nil)
	n.Make(t, http.MethodDelete, "/v1/comments/"+want[5], nil)
	for limit := 1; limit <= len(want)+1; limit++ {
		require.Equal(t, want, n.paged(t, post+"/comments?", limit, "id"), "by %d", limit)
	}
}

func commentsAsMade(t *testing.T, n *tenant) {
	post := n.Post(t)
	top := n.Make(t, http.MethodPost, post+"/comments", object{"body": object{"json": object{"type": "doc"}, "text": "Me too."}})
	reply := n.member(t, "b").Make(t, http.MethodPost, post+"/comments", object{"body": object{"text": "So do I."}, "parentId": top["id"]})
	list := n.Do(t, http.MethodGet, post+"/comments", nil)
	require.Equal(t, object{"data": []any{top, reply}, "nextCursor": nil}, list.Body)
	require.NotEqual(t, top["authorUserId"], reply["authorUserId"])
}

func tombstone(t *testing.T, n *tenant) {
	post := n.Post(t)
	made := n.Make(t, http.MethodPost, post+"/comments", object{"body": object{"json": object{"a": 1}, "text": "secret"}})
	reply := n.Make(t, http.MethodPost, post+"/comments", object{"body": object{"text": "x"}, "parentId": made["id"]})
	require.Equal(t, object{"id": made["id"]}, n.Make(t, http.MethodDelete, "/v1/comments/"+made["id"].(string), nil))
	shown := n.Do(t, http.MethodGet, post+"/comments", nil).Body["data"].([]any)
	stone := shown[0].(object)
	require.Equal(t, object{
		"id": made["id"], "postId": made["postId"], "parentId": nil, "body": nil, "authorUserId": nil, "contactId": nil,
		"createdAt": made["createdAt"], "updatedAt": stone["deletedAt"], "deletedAt": stone["deletedAt"],
	}, stone)
	require.Greater(t, stone["deletedAt"], made["createdAt"])
	require.Equal(t, reply, shown[1])
	n.Make(t, http.MethodDelete, "/v1/comments/"+reply["id"].(string), nil)
	stone = n.Do(t, http.MethodGet, post+"/comments", nil).Body["data"].([]any)[1].(object)
	require.Equal(t, object{"id": reply["id"], "parentId": made["id"], "body": nil, "authorUserId": nil, "contactId": nil},
		apptest.Without(stone, "postId", "createdAt", "updatedAt", "deletedAt"))
}

func replyToTombstone(t *testing.T, n *tenant) {
	post := n.Post(t)
	top := n.Comment(t, post, "")
	n.Make(t, http.MethodDelete, "/v1/comments/"+top, nil)
	reply := n.Comment(t, post, top)
	require.Equal(t, []string{top, reply}, n.shown(t, post+"/comments", "id"))
	n.Make(t, http.MethodDelete, "/v1/comments/"+reply, nil)
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, post+"/comments", object{"body": object{"text": "x"}, "parentId": reply})
	require.Equal(t, []string{"parentId oneLevel"}, apptest.FieldRules(a), "a tombstone of a reply is a reply still")
}

func commentCounts(t *testing.T, n *tenant) {
	post := n.Post(t)
	all := n.threads(t, post)
	for i, id := range all {
		require.Equal(t, json.Number(fmt.Sprint(len(all)-i)), n.Get(t, post)["commentCount"])
		n.Make(t, http.MethodDelete, "/v1/comments/"+id, nil)
	}
	require.Equal(t, json.Number("0"), n.Get(t, post)["commentCount"])
	require.Equal(t, all, n.shown(t, post+"/comments", "id"), "tombstones stay in the list")
}

// bodyOf returns a text for a request that writes one.
func bodyOf(method string) any {
	if method == http.MethodPost || method == http.MethodPatch {
		return object{"body": object{"text": "x"}}
	}
	return nil
}

func deletedTwice(t *testing.T, n *tenant) {
	comment := "/v1/comments/" + n.Comment(t, n.Post(t), "")
	n.Make(t, http.MethodDelete, comment, nil)
	for _, method := range []string{http.MethodDelete, http.MethodPatch} {
		n.Refused(t, "ERR_NOT_FOUND", method, comment, bodyOf(method))
	}
}

func commentsOfOnePost(t *testing.T, n *tenant) {
	a, b := n.Post(t), n.Post(t)
	onA, onB := n.Comment(t, a, ""), n.Comment(t, b, "")
	require.Equal(t, []string{onA}, n.shown(t, a+"/comments", "id"))
	require.Equal(t, []string{onB}, n.shown(t, b+"/comments", "id"))
}

func badCommentPages(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.anonymousVote(t, post, "a")
	n.anonymousVote(t, post, "b")
	_, ofVotes := n.pageOf(t, post+"/votes?limit=1", "id")
	for query, want := range map[string]string{
		"limit=0": "limit minimum", "limit=101": "limit maximum", "limit=x": "limit type",
		"cursor=x": "cursor cursor", "cursor=" + ofVotes: "cursor cursor",
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, post+"/comments?"+query, nil)
		require.Equal(t, []string{want}, apptest.FieldRules(a), query)
	}
}

func foreignParents(t *testing.T, n *tenant) {
	post, elsewhere := n.Post(t), n.Comment(t, n.Post(t), "")
	stranger := n.on(t, "business")
	for _, parent := range []string{elsewhere, stranger.Comment(t, stranger.Post(t), "")} {
		a := n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, post+"/comments", object{"body": object{"text": "x"}, "parentId": parent})
		require.Equal(t, "parentId", a.Details()["field"])
	}
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, post+"/comments", object{"body": object{"text": ""}, "parentId": ""})
	require.ElementsMatch(t, []string{"body.text", "parentId"}, a.Fields())
}

func foreignComments(t *testing.T, n *tenant) {
	post, stranger := n.Post(t), n.on(t, "business")
	comment := "/v1/comments/" + n.Comment(t, post, "")
	unchanged := n.Watch(t)
	for _, r := range []struct{ method, path string }{
		{http.MethodGet, post + "/comments"}, {http.MethodPost, post + "/comments"},
		{http.MethodPatch, comment}, {http.MethodDelete, comment},
	} {
		stranger.Refused(t, "ERR_NOT_FOUND", r.method, r.path, bodyOf(r.method))
	}
	unchanged(t)
}

func commentsOfDeletedPost(t *testing.T, n *tenant) {
	post := n.Post(t)
	comment := n.Comment(t, post, "")
	n.Make(t, http.MethodDelete, post, nil)
	for _, r := range []struct{ method, path string }{
		{http.MethodGet, post + "/comments"}, {http.MethodPost, post + "/comments"},
		{http.MethodPatch, "/v1/comments/" + comment}, {http.MethodDelete, "/v1/comments/" + comment},
	} {
		n.Refused(t, "ERR_NOT_FOUND", r.method, r.path, bodyOf(r.method))
	}
}

func quietComments(t *testing.T, n *tenant) {
	comment := "/v1/comments/" + n.Comment(t, n.Post(t), "")
	n.Listen(t)
	n.Patch(t, comment, object{"body": object{"text": "y"}})
	n.Make(t, http.MethodDelete, comment, nil)
	require.Empty(t, n.Recorded(t))
}

// A deletion also removes the text from the database.
func nothingKept(t *testing.T, n *tenant) {
	post := n.Post(t)
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	anonymous := client.Comment.Create().SetPostID(postOf(t, post)).SetEmailHash([]byte("ada")).SetBodyText("secret").SaveX(ctx)
	client.Post.Update().AddCommentCount(1).ExecX(ctx)
	made := n.ID(t, post+"/comments", object{"body": object{"json": object{"type": "secret"}, "text": "secret"}})
	for _, id := range []string{made, anonymous.ID.String()} {
		n.Make(t, http.MethodDelete, "/v1/comments/"+id, nil)
	}
	kept := client.Comment.Query().Where(comment.Or(
		comment.EmailHashNotNil(), comment.AuthorUserIDNotNil(), comment.BodyJSONNotNil(), comment.BodyTextNEQ(""),
	))
	require.Zero(t, kept.CountX(ctx))
}

func commentActivity(t *testing.T, n *tenant) {
	post := n.Post(t)
	before := n.Get(t, post)
	comment := n.Comment(t, post, "")
	after := n.Get(t, post)
	require.Greater(t, after["lastActivityAt"], before["lastActivityAt"])
	require.Equal(t, before["updatedAt"], after["updatedAt"], "the post itself says what it said")
	n.Make(t, http.MethodDelete, "/v1/comments/"+comment, nil)
	require.Equal(t, before["commentCount"], n.Get(t, post)["commentCount"])
	require.Equal(t, after["lastActivityAt"], n.Get(t, post)["lastActivityAt"])
}

func TestACommentCanBeEdited(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"for a quarter of an hour":                   editWindow,
		"as a whole: without a document it has none": editedBody,
		"and stays as it is when it says the same":   sameComment,
		"within the limits that new ones have":       editLimits,
		"and keeps its place and its time":           editedInPlace,
		"on the post that its own was merged into":   editedAfterMerge,
		"by its author, owners and admins alone":     editedByOthers,
	})
}

// aged makes a comment with an earlier creation time, which only the store can set.
func (n *tenant) aged(t *testing.T, age time.Duration) string {
	t.Helper()
	ctx, on := n.Context(t.Context()), postOf(t, n.Post(t))
	made := n.App.Store.Client().Comment.Create().SetPostID(on).SetAuthorUserID(n.Owner.ID).SetBodyText("x").
		SetCreatedAt(time.Now().Add(-age)).SaveX(ctx)
	n.App.Store.Client().Post.UpdateOneID(on).AddCommentCount(1).ExecX(ctx)
	return "/v1/comments/" + made.ID.String()
}

func editWindow(t *testing.T, n *tenant) {
	young, old := n.aged(t, 14*time.Minute), n.aged(t, 15*time.Minute+time.Second)
	n.Patch(t, young, object{"body": object{"text": "y"}})
	a := n.Refused(t, "ERR_FORBIDDEN", http.MethodPatch, old, object{"body": object{"text": "y"}})
	require.Equal(t, http.StatusForbidden, a.Status)
	require.Equal(t, object{"reason": "edit_window_expired"}, a.Details())
	n.Make(t, http.MethodDelete, old, nil)
}

func editedBody(t *testing.T, n *tenant) {
	comment := "/v1/comments/" + n.Comment(t, n.Post(t), "")
	full := object{"json": object{"type": "doc"}, "text": "both"}
	for _, test := range []struct{ body, want object }{
		{object{"text": "only text"}, object{"json": nil, "text": "only text"}},
		{object{"json": nil, "text": " x "}, object{"json": nil, "text": " x "}},
		{object{"json": []any{}, "text": "both"}, object{"json": []any{}, "text": "both"}},
	} {
		require.Equal(t, full, n.Patch(t, comment, object{"body": full})["body"])
		require.Equal(t, test.want, n.Patch(t, comment, object{"body": test.body})["body"])
	}
}

func sameComment(t *testing.T, n *tenant) {
	made := n.Do(t, http.MethodPost, n.Post(t)+"/comments", `{"body":{"json":{"z": 1.0, "a": ["é"]},"text":"x"}}`).Data()
	comment := "/v1/comments/" + made["id"].(string)
	n.Listen(t)
	unchanged := n.Watch(t)
	require.Equal(t, made, n.Patch(t, comment, made))
	require.Equal(t, made, n.Patch(t, comment, object{"body": made["body"]}))
	unchanged(t)
}

func editLimits(t *testing.T, n *tenant) {
	comment := "/v1/comments/" + n.Comment(t, n.Post(t), "")
	n.Patch(t, comment, object{"body": object{"text": strings.Repeat("é", 50_000)}})
	for _, body := range []object{{}, {"body": object{}}, {"body": object{"json": object{}}}} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, comment, body)
		require.Regexp(t, `^body(\.text)?$`, a.Fields()[0], "what is missing")
	}
	for want, body := range map[string]any{
		"body type":           object{"body": "text"},
		"body.text minLength": object{"body": object{"text": ""}},
		"body.text maxLength": object{"body": object{"text": strings.Repeat("é", 50_001)}},
		"body.text pattern":   object{"body": object{"text": "a\x00b"}},
		"body.json maxBytes":  object{"body": object{"text": "x", "json": strings.Repeat("x", 256<<10)}},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, comment, body)
		require.Equal(t, []string{want}, apptest.FieldRules(a))
	}
}

func editedInPlace(t *testing.T, n *tenant) {
	post := n.Post(t)
	all := n.threads(t, post)
	before := n.Do(t, http.MethodGet, post+"/comments", nil).Body["data"].([]any)[2].(object)
	got := n.Patch(t, "/v1/comments/"+all[2], object{"body": object{"text": "y"}})
	require.Greater(t, got["updatedAt"], before["updatedAt"])
	before["body"], before["updatedAt"] = object{"json": nil, "text": "y"}, got["updatedAt"]
	require.Equal(t, before, got)
	require.Equal(t, got, n.Do(t, http.MethodGet, post+"/comments", nil).Body["data"].([]any)[2])
	require.Equal(t, all, n.shown(t, post+"/comments", "id"))
	require.Equal(t, json.Number("8"), n.Get(t, post)["commentCount"])
}

func editedAfterMerge(t *testing.T, n *tenant) {
	board := n.Board(t)
	target, source := n.say(t, board, "a", ""), n.say(t, board, "b", "")
	comment := "/v1/comments/" + n.Comment(t, source, "")
	n.merge(t, target, source)
	require.Equal(t, strings.TrimPrefix(target, "/v1/posts/"), n.Patch(t, comment, object{"body": object{"text": "y"}})["postId"])
	n.Make(t, http.MethodDelete, comment, nil)
	require.Equal(t, "0 0", fmt.Sprint(n.Get(t, target)["commentCount"], " ", n.Get(t, source)["commentCount"]))
}

func editedByOthers(t *testing.T, n *tenant) {
	post, member := n.Post(t), n.as(t, n.App.Store.Client().User.Create().SetEmail("b@example.com").SetName("b").
		SetRole(user.RoleMember).SaveX(n.Context(t.Context())))
	edited := func(by *tenant, id any) bool {
		return by.Do(t, http.MethodPatch, "/v1/comments/"+id.(string), object{"body": object{"text": "by " + by.Owner.Email}}).Status == http.StatusOK
	}
	lines := func(id any) int {
		return len(n.Do(t, http.MethodGet, "/v1/audit?actions=updateComment&resource="+id.(string), nil).Body["data"].([]any))
	}
	owners := n.Make(t, http.MethodPost, post+"/comments", object{"body": object{"text": "x"}})
	customers := n.Make(t, http.MethodPost, post+"/comments", object{
		"body": object{"text": "I love it"}, "externalUserId": "u1", "createContact": true})
	members := member.Make(t, http.MethodPost, post+"/comments", object{"body": object{"text": "x"}})
	for _, id := range []any{owners["id"], customers["id"]} {
		a := member.Refused(t, "ERR_FORBIDDEN", http.MethodPatch, "/v1/comments/"+id.(string), object{"body": object{"text": "I hate it"}})
		require.Equal(t, "role_insufficient", a.Details()["reason"])
	}
	require.True(t, edited(member, members["id"]))
	require.True(t, edited(n, owners["id"]))
	require.Equal(t, []int{0, 0, 0}, []int{lines(owners["id"]), lines(customers["id"]), lines(members["id"])}, "own comments")
	require.True(t, edited(n, members["id"]))
	require.True(t, edited(n, customers["id"]))
	require.Equal(t, []int{0, 1, 1}, []int{lines(owners["id"]), lines(customers["id"]), lines(members["id"])}, "others' comments")
	require.Equal(t, members["authorUserId"], n.Get(t, "/v1/comments/"+members["id"].(string))["authorUserId"])
}

func TestTheEditWindowIsASetting(t *testing.T) {
	t.Parallel()
	refusedSoon := func(t *testing.T, n *tenant) {
		comment := "/v1/comments/" + n.Comment(t, n.Post(t), "")
		n.Listen(t)
		// The same text is refused too, because the check ignores the text.
		for _, text := range []string{"y", "x"} {
			a := n.Refused(t, "ERR_FORBIDDEN", http.MethodPatch, comment, object{"body": object{"text": text}})
			require.Equal(t, "edit_window_expired", a.Details()["reason"])
		}
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, comment, object{"body": object{"text": ""}})
		require.Equal(t, []string{"body.text"}, a.Fields())
		n.Make(t, http.MethodDelete, comment, nil)
		n.Refused(t, "ERR_NOT_FOUND", http.MethodPatch, comment, object{"body": object{"text": "y"}})
	}
	within := func(window string) *apptest.App {
		return apptest.Start(t, apptest.Options{Environ: []string{"EARSHOT_COMMENT_EDIT_WINDOW=" + window}})
	}
	togetherOn(t, within("1ns"), map[string]func(*testing.T, *tenant){"that can end at once": refusedSoon})
	togetherOn(t, within("0"), map[string]func(*testing.T, *tenant){"that can have no end": func(t *testing.T, n *tenant) {
		n.Patch(t, n.aged(t, 10*365*24*time.Hour), object{"body": object{"text": "y"}})
	}})
}
