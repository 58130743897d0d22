package feedback_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/user"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestAListOfVotes(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is walked from end to end while it grows":       votesWalked,
		"shows each as it was cast, the newest first":    votesAsCast,
		"has no voters' addresses":                       votesWithoutAddress,
		"lacks the votes that were taken back":           votesTakenBack,
		"is of one post":                                 votesOfOnePost,
		"refuses limits and cursors that aren't its own": badVotePages,
		"isn't there for another organization":           foreignVotes,
	})
}

// postOf reads a post's id from its path.
func postOf(t *testing.T, path string) publicid.Post {
	t.Helper()
	id, err := publicid.Parse[publicid.Post](strings.TrimPrefix(path, "/v1/posts/"))
	require.NoError(t, err)
	return id
}

// anonymousVote adds a vote of the public flow, which is not part of the API. The vote has a hash
// of the address.
func (n *tenant) anonymousVote(t *testing.T, post, voter string) string {
	t.Helper()
	ctx, client, on := n.Context(t.Context()), n.App.Store.Client(), postOf(t, post)
	client.Post.UpdateOneID(on).AddVoteCount(1).ExecX(ctx)
	return client.Vote.Create().SetPostID(on).SetEmailHash([]byte(voter)).SaveX(ctx).ID.String()
}

// member makes another member of the organization with a key of its own.
func (n *tenant) member(t *testing.T, name string) *tenant {
	t.Helper()
	return n.as(t, n.App.Store.Client().User.Create().SetEmail(name+"@example.com").SetName(name).SetRole(user.RoleOwner).SaveX(n.Context(t.Context())))
}

func votesWalked(t *testing.T, n *tenant) {
	post := n.Post(t)
	walks(t, n, list{post + "/votes", func(i int) string { return n.anonymousVote(t, post, fmt.Sprint(i)) }, true, 25, false})
}

func votesAsCast(t *testing.T, n *tenant) {
	post := n.Post(t)
	var want []any
	for _, voter := range []*tenant{n, n.member(t, "b"), n.member(t, "c")} {
		cast := voter.Make(t, http.MethodPost, post+"/votes", nil)
		cast["contact"] = nil
		want = append([]any{cast}, want...)
	}
	list := n.Do(t, http.MethodGet, post+"/votes", nil)
	require.Equal(t, object{"data": want, "nextCursor": nil}, list.Body)
	require.Equal(t, n.Owner.ID.String(), want[2].(object)["userId"])
}

func votesWithoutAddress(t *testing.T, n *tenant) {
	post := n.Post(t)
	vote := n.anonymousVote(t, post, "ada")
	list := n.Do(t, http.MethodGet, post+"/votes", nil)
	shown := list.Body["data"].([]any)[0].(object)
	require.Equal(t, object{"id": vote, "postId": strings.TrimPrefix(post, "/v1/posts/"), "userId": nil, "contactId": nil, "contact": nil}, apptest.Without(shown, "createdAt"))
}

func votesTakenBack(t *testing.T, n *tenant) {
	post, second := n.Post(t), n.member(t, "b")
	n.ID(t, post+"/votes", nil)
	kept := second.ID(t, post+"/votes", nil)
	n.Make(t, http.MethodDelete, post+"/votes", nil)
	require.Equal(t, []string{kept}, n.shown(t, post+"/votes", "id"))
	again := n.ID(t, post+"/votes", nil)
	require.Equal(t, []string{again, kept}, n.shown(t, post+"/votes", "id"), "a vote that is cast again is a new one")
}

func votesOfOnePost(t *testing.T, n *tenant) {
	a, b := n.Post(t), n.Post(t)
	voteA, voteB := n.ID(t, a+"/votes", nil), n.ID(t, b+"/votes", nil)
	require.Equal(t, []string{voteA}, n.shown(t, a+"/votes", "id"))
	require.Equal(t, []string{voteB}, n.shown(t, b+"/votes", "id"))
}

func badVotePages(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Comment(t, post, "")
	n.Comment(t, post, "")
	_, ofComments := n.pageOf(t, post+"/comments?limit=1", "id")
	for query, want := range map[string]string{
		"limit=0": "limit minimum", "limit=101": "limit maximum", "limit=x": "limit type",
		"cursor=x": "cursor cursor", "cursor=" + ofComments: "cursor cursor",
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, post+"/votes?"+query, nil)
		require.Equal(t, []string{want}, apptest.FieldRules(a), query)
	}
}

func foreignVotes(t *testing.T, n *tenant) {
	post, stranger := n.Post(t), n.on(t, "business")
	n.ID(t, post+"/votes", nil)
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		stranger.Refused(t, "ERR_NOT_FOUND", method, post+"/votes", nil)
	}
	require.Equal(t, 1, n.App.Store.Client().Vote.Query().CountX(n.Context(t.Context())))
}
