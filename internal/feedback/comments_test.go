package feedback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/event"
)

func TestACommentAndAVote(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"a comment is the caller's and counts on its post":               newComment,
		"a reply answers a comment":                                      reply,
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
	post := n.post(t)
	n.listen(t)
	a := n.Do(t, http.MethodPost, post+"/comments", `{"body":{"json":{"z":1.0,"a":[]},"text":" Me too. "},"parentId":null}`)
	require.Equal(t, http.StatusCreated, a.Status)
	made := a.Data()
	require.Equal(t, object{
		"postId": strings.TrimPrefix(post, "/v1/posts/"), "parentId": nil, "authorUserId": n.Owner.ID.String(),
		"body":      object{"json": object{"z": json.Number("1.0"), "a": []any{}}, "text": " Me too. "},
		"deletedAt": nil,
	}, without(made, "id", "createdAt", "updatedAt"))
	require.Equal(t, json.Number("1"), n.get(t, post)["commentCount"])
	require.Equal(t, []object{{
		"event": "comment.created", "organizationId": n.Organization.ID.String(), "boardId": n.get(t, post)["boardId"],
		"comment": object{
			"id": made["id"], "postId": made["postId"], "parentId": nil, "authorUserId": n.Owner.ID.String(),
			"bodyText": " Me too. ", "createdAt": made["createdAt"],
		},
	}}, n.payloads(t, event.CommentCreated))
}

func (n *tenant) comment(t *testing.T, post, parent string) string {
	t.Helper()
	body := object{"body": object{"text": "x"}}
	if parent != "" {
		body["parentId"] = parent
	}
	return n.ID(t, post+"/comments", body)
}

func reply(t *testing.T, n *tenant) {
	post := n.post(t)
	n.listen(t)
	top := n.comment(t, post, "")
	n.comment(t, post, top)
	told := n.payloads(t, event.CommentCreated)
	require.Len(t, told, 2)
	require.Equal(t, top, told[1]["comment"].(object)["parentId"])
	require.Equal(t, json.Number("2"), n.get(t, post)["commentCount"])
}

func replyToReply(t *testing.T, n *tenant) {
	post := n.post(t)
	second := n.comment(t, post, n.comment(t, post, ""))
	n.listen(t)
	a := n.refused(t, "ERR_VALIDATION", http.MethodPost, post+"/comments", object{"body": object{"text": "x"}, "parentId": second})
	require.Equal(t, []string{"parentId"}, a.Fields())
}

func commentLimits(t *testing.T, n *tenant) {
	post := n.post(t)
	n.Make(t, http.MethodPost, post+"/comments", object{"body": object{"text": strings.Repeat("é", 50_000)}})
	for why, body := range map[string]object{
		"no text":          {"json": object{}},
		"empty":            {"text": ""},
		"one too many":     {"text": strings.Repeat("é", 50_001)},
		"too long by NULs": {"text": "\x00"},
	} {
		a := n.refused(t, "ERR_VALIDATION", http.MethodPost, post+"/comments", object{"body": body})
		require.Equal(t, []string{"body.text"}, a.Fields(), why)
	}
}

func castTwice(t *testing.T, n *tenant) {
	post := n.post(t)
	n.listen(t)
	first := n.Do(t, http.MethodPost, post+"/votes", nil)
	require.Equal(t, http.StatusCreated, first.Status)
	require.Equal(t, n.Owner.ID.String(), first.Data()["userId"])
	unchanged := n.Watch(t)
	again := n.Do(t, http.MethodPost, post+"/votes", nil)
	require.Equal(t, http.StatusOK, again.Status)
	require.Equal(t, first.Data(), again.Data())
	unchanged(t)
	read := n.get(t, post)
	require.Equal(t, json.Number("1"), read["voteCount"])
	require.Equal(t, []object{{
		"event": "vote.created", "organizationId": n.Organization.ID.String(), "boardId": read["boardId"], "vote": first.Data(),
	}}, n.payloads(t, event.VoteCreated))
}

func retract(t *testing.T, n *tenant) {
	post := n.post(t)
	n.listen(t)
	vote := n.ID(t, post+"/votes", nil)
	taken := n.Do(t, http.MethodDelete, post+"/votes", nil)
	require.Equal(t, http.StatusOK, taken.Status)
	require.Equal(t, object{"id": vote, "postId": strings.TrimPrefix(post, "/v1/posts/")}, taken.Data())
	require.Equal(t, json.Number("0"), n.get(t, post)["voteCount"])
	require.Len(t, n.recorded(t), 1, "taking a vote is no event")
	require.NotEqual(t, vote, n.ID(t, post+"/votes", nil))
	require.Len(t, n.recorded(t), 2)
}

func voteOfEachMember(t *testing.T, n *tenant) {
	post := n.post(t)
	member := n.app.Store.Client().User.Create().SetEmail("second@example.com").SetName("Second").SaveX(n.Context(t.Context()))
	n.ID(t, post+"/votes", nil)
	second := n.as(t, member)
	require.Equal(t, http.StatusCreated, second.Do(t, http.MethodPost, post+"/votes", nil).Status)
	require.Equal(t, json.Number("2"), n.get(t, post)["voteCount"])
	second.Make(t, http.MethodDelete, post+"/votes", nil)
	require.Equal(t, json.Number("1"), n.get(t, post)["voteCount"])
	require.Equal(t, http.StatusOK, n.Do(t, http.MethodPost, post+"/votes", nil).Status, "the first one's is still there")
}

// as is the organization through a key of another member.
func (n *tenant) as(t *testing.T, member *db.User) *tenant {
	t.Helper()
	same := *n.Tenant
	same.Owner = member
	same.Key = same.NewKey(t, newKey)
	return &tenant{&same, n.app}
}

func retractNothing(t *testing.T, n *tenant) {
	post := n.post(t)
	unchanged := n.Watch(t)
	for range 2 {
		a := n.Do(t, http.MethodDelete, post+"/votes", nil)
		require.Equal(t, http.StatusOK, a.Status)
		require.Nil(t, a.Data()["id"])
	}
	unchanged(t)
}

// The public flow, which leaves hashes of addresses, isn't part of the API.
func countsByAddress(t *testing.T, n *tenant) {
	contact := n.identify(t, object{"externalUserId": "u-1"})["id"].(string)
	counts := func() string {
		c := n.get(t, "/v1/contacts/"+contact)
		return fmt.Sprint(c["voteCount"], " ", c["commentCount"])
	}
	n.ID(t, n.post(t)+"/votes", nil)
	require.Equal(t, "0 0", counts(), "votes without an address are nobody's")
	n.identify(t, object{"externalUserId": "u-1", "email": "Ada@Example.com"})
	ctx, client := n.Context(t.Context()), n.app.Store.Client()
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
	theirs := stranger.identify(t, object{"externalUserId": "u-1", "email": "ada@example.com"})["id"].(string)
	require.Equal(t, json.Number("0"), stranger.get(t, "/v1/contacts/"+theirs)["voteCount"])
}

func deletedPost(t *testing.T, n *tenant) {
	path := n.post(t)
	n.app.Store.Client().Post.Update().SetDeletedAt(n.Owner.CreatedAt).ExecX(n.Context(t.Context()))
	for _, r := range []struct{ method, path string }{
		{http.MethodGet, path}, {http.MethodPatch, path}, {http.MethodPost, path + "/comments"},
		{http.MethodPost, path + "/votes"}, {http.MethodDelete, path + "/votes"},
	} {
		n.refused(t, "ERR_NOT_FOUND", r.method, r.path, object{"body": object{"text": "x"}})
	}
}
