package feedback_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/comment"
	"earshot/ent/db/user"
)

func TestTheActivityOfAMemberCountsForTheContactWithItsAddress(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"while it is there":                             memberCounts,
		"and follows merges":                            memberCountsMerged,
		"for each of two members who share one address": memberTwins,
	})
}

// ada makes a member, and returns the counts of the contact with the member's address.
func (n *tenant) ada(t *testing.T) (member *tenant, counts func() string) {
	t.Helper()
	user := n.App.Store.Client().User.Create().SetEmail(" Ada@Example.COM").SetName("Ada").SetRole(user.RoleOwner).SaveX(n.Context(t.Context()))
	contact := n.Identify(t, object{"externalUserId": "u-1", "email": "ada@example.com"})["id"].(string)
	return n.as(t, user), func() string {
		c := n.Get(t, "/v1/contacts/"+contact)
		return fmt.Sprint(c["voteCount"], " ", c["commentCount"])
	}
}

func memberCounts(t *testing.T, n *tenant) {
	ada, counts := n.ada(t)
	post := n.Post(t)
	n.ID(t, post+"/votes", nil) // the owner's
	n.Comment(t, post, "")
	require.Equal(t, "0 0", counts())
	ada.ID(t, post+"/votes", nil)
	top := ada.Comment(t, post, "")
	reply := ada.Comment(t, post, top)
	require.Equal(t, "1 2", counts())
	n.Make(t, http.MethodDelete, "/v1/comments/"+reply, nil)
	require.Equal(t, "1 1", counts())
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	require.Zero(t, client.Comment.Query().Where(comment.DeletedAtNotNil(), comment.EmailHashNotNil()).CountX(ctx), "a tombstone has none")
	ada.Make(t, http.MethodDelete, post+"/votes", nil)
	require.Equal(t, "0 1", counts())
}

func memberCountsMerged(t *testing.T, n *tenant) {
	ada, counts := n.ada(t)
	target, source := n.Post(t), ""
	for _, vote := range []string{"twice", "once"} {
		_, posts := n.numbered(t, 2)
		target, source = posts[0], posts[1]
		if vote == "twice" {
			ada.ID(t, target+"/votes", nil)
		}
		ada.ID(t, source+"/votes", nil)
		ada.Comment(t, target, "")
		ada.Comment(t, source, "")
		n.merge(t, target, source)
	}
	require.Equal(t, "2 4", counts())
	require.Equal(t, "1 votes, 1 listed; 2 comments, 2 listed", n.counts(t, target))
}

func memberTwins(t *testing.T, n *tenant) {
	ada, counts := n.ada(t)
	twin := n.as(t, n.App.Store.Client().User.Create().SetEmail("ADA@example.com").SetName("Ada").SetRole(user.RoleOwner).SaveX(n.Context(t.Context())))
	post := n.Post(t)
	for _, member := range []*tenant{ada, twin} {
		require.Equal(t, http.StatusCreated, member.Do(t, http.MethodPost, post+"/votes", nil).Status)
		require.Equal(t, http.StatusOK, member.Do(t, http.MethodPost, post+"/votes", nil).Status)
	}
	require.Equal(t, "2 0", counts())
}
