package feedback_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/comment"
	"earshot/ent/db/user"
)

func TestTheActivityOfAContactFollowsItsPresentAddress(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"its vote, when the address is told afterwards":                     voteBeforeAddress,
		"its vote, when the address is told in a batch":                     voteBeforeBatch,
		"its vote, when the address was another person's by mistake":        voteOfWrongAddress,
		"its vote, unless another vote on the post has the address already": voteBesideAnother,
		"its vote, when it is deleted":                                      voteOfDeletedAddress,
		"its votes, when their posts are merged in any order":               addressesMerged,
		"its votes, when they are merged with one that is without":          withoutAddressMerged,
		"its guest, when the address is told afterwards":                    guestBeforeAddress,
		"its guest, when the address is another person's now":               guestOfFormerAddress,
		"its guest, unless another one has the address already":             guestBesideAnother,
		"a guest that was never a contact's, like any other of the address": guestWithoutContact,
		"its comments, also when it has no address any more":                commentsFollow,
	})
}

// late is a contact without an address.
var late = object{"externalUserId": "late", "createContact": true}

func (n *tenant) tell(t *testing.T, id, address string) object {
	t.Helper()
	return n.Identify(t, object{"externalUserId": id, "email": address})
}

func (n *tenant) move(t *testing.T, contact any, address any) {
	t.Helper()
	n.Patch(t, "/v1/contacts/"+contact.(string), object{"email": address})
}

// requireAdas checks that a vote is the only one of the person with the address ada@example.com.
func (n *tenant) requireAdas(t *testing.T, ada *tenant, post string, id any) {
	t.Helper()
	require.Equal(t, id, ada.voteOf(t, post, nil, http.StatusOK)["id"])
	require.Equal(t, id, n.voteOf(t, post, object{"externalUserId": "u-1"}, http.StatusOK)["id"])
	require.Equal(t, id, ada.Make(t, http.MethodDelete, post+"/votes", nil)["id"])
	require.Equal(t, "0 votes, 0 listed; 0 comments, 0 listed", n.counts(t, post))
}

func voteBeforeAddress(t *testing.T, n *tenant) {
	told, patched := n.Post(t), n.Post(t)
	first := n.voteOf(t, told, late, http.StatusCreated)
	n.tell(t, "late", "Ada@example.com")
	ada, _ := n.ada(t)
	n.requireAdas(t, ada, told, first["id"])
	n.move(t, first["contactId"], nil)
	second := n.voteOf(t, patched, late, http.StatusCreated)
	n.move(t, first["contactId"], "ada@example.com")
	require.Equal(t, second["id"], n.voteOf(t, patched, object{"externalUserId": "u-1"}, http.StatusOK)["id"])
}

func voteBeforeBatch(t *testing.T, n *tenant) {
	post := n.Post(t)
	first := n.voteOf(t, post, late, http.StatusCreated)
	n.Identify(t, object{"externalUserId": "other"})
	a := n.Do(t, http.MethodPost, "/v1/contacts/identify/batch", object{"contacts": []object{
		{"externalUserId": "late", "email": "ada@example.com"}, {"externalUserId": "other", "email": "ada@example.com"},
	}})
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	require.Equal(t, first["id"], n.voteOf(t, post, object{"externalUserId": "other"}, http.StatusOK)["id"])
	ada, _ := n.ada(t)
	n.requireAdas(t, ada, post, first["id"])
}

func voteOfWrongAddress(t *testing.T, n *tenant) {
	post := n.Post(t)
	mistaken := n.tell(t, "ada", "bob@example.com")["id"]
	kept := n.voteOf(t, post, object{"contactId": mistaken}, http.StatusCreated)
	n.move(t, mistaken, "ada@example.com")
	bob := n.member(t, "bob")
	own := bob.voteOf(t, post, nil, http.StatusCreated)
	require.Equal(t, own["id"], bob.Make(t, http.MethodDelete, post+"/votes", nil)["id"])
	require.Nil(t, bob.Make(t, http.MethodDelete, post+"/votes", nil)["id"])
	require.Equal(t, []string{kept["id"].(string)}, n.shown(t, post+"/votes", "id"))
}

// If two votes turn out to belong to one person, both stay.
func voteBesideAnother(t *testing.T, n *tenant) {
	post := n.Post(t)
	twin := object{"externalUserId": "twin", "createContact": true}
	first, second := n.voteOf(t, post, late, http.StatusCreated), n.voteOf(t, post, twin, http.StatusCreated)
	anonymous := n.anonymousVote(t, post, n.hashOf("bo@example.com"))
	n.tell(t, "late", "ada@example.com")
	n.tell(t, "twin", "ada@example.com")
	ada, _ := n.ada(t)
	require.Equal(t, first["id"], ada.voteOf(t, post, nil, http.StatusOK)["id"])
	require.Equal(t, second["id"], n.voteOf(t, post, twin, http.StatusOK)["id"])
	n.move(t, second["contactId"], "bo@example.com")
	require.Equal(t, "3 votes, 3 listed; 0 comments, 0 listed", n.counts(t, post))
	n.move(t, first["contactId"], "elsewhere@example.com")
	n.move(t, second["contactId"], "ada@example.com")
	require.Equal(t, second["id"], ada.voteOf(t, post, nil, http.StatusOK)["id"])
	require.Equal(t, second["id"], n.Make(t, http.MethodDelete, post+"/votes?externalUserId=twin", nil)["id"])
	require.ElementsMatch(t, []string{first["id"].(string), anonymous}, n.shown(t, post+"/votes", "id"))
}

func voteOfDeletedAddress(t *testing.T, n *tenant) {
	post := n.Post(t)
	first := n.voteOf(t, post, late, http.StatusCreated)
	n.tell(t, "late", "ada@example.com")
	n.Make(t, http.MethodDelete, "/v1/contacts/"+first["contactId"].(string), nil)
	ada, _ := n.ada(t)
	n.requireAdas(t, ada, post, first["id"])
}

func addressesMerged(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 4)
	member, _ := n.ada(t)
	kept := member.voteOf(t, posts[1], nil, http.StatusCreated)
	n.voteOf(t, posts[2], late, http.StatusCreated)
	n.tell(t, "late", "ada@example.com")
	n.voteOf(t, posts[3], late, http.StatusCreated)
	require.Equal(t, json.Number("1"), n.merge(t, posts[0], posts[1:]...)["voteCount"])
	require.Equal(t, []string{kept["id"].(string)}, n.shown(t, posts[0]+"/votes", "id"))
}

func withoutAddressMerged(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 4)
	n.voteOf(t, posts[1], late, http.StatusCreated)
	n.anonymousVote(t, posts[1], n.hashOf("ada@example.com"))
	n.tell(t, "late", "ada@example.com")
	n.voteOf(t, posts[2], late, http.StatusCreated)
	member, _ := n.ada(t)
	member.voteOf(t, posts[3], nil, http.StatusCreated)
	require.Equal(t, json.Number("1"), n.merge(t, posts[0], posts[1:3]...)["voteCount"])
	require.Equal(t, json.Number("1"), n.merge(t, posts[0], posts[3])["voteCount"])
	n.requireAdas(t, member, posts[0], n.shown(t, posts[0]+"/votes", "id")[0])
}

func (n *tenant) guests(t *testing.T) int {
	t.Helper()
	return n.App.Store.Client().User.Query().Where(user.KindEQ(user.KindGuest)).CountX(n.Context(t.Context()))
}

func guestBeforeAddress(t *testing.T, n *tenant) {
	post := n.Post(t)
	by := func(id string) any {
		return n.commentOf(t, post, object{"externalUserId": id, "createContact": true})["authorUserId"]
	}
	first := by("late")
	n.tell(t, "late", "ada@example.com")
	n.tell(t, "twin", "ada@example.com")
	require.Equal(t, []any{first, first}, []any{by("twin"), by("late")})
	require.Equal(t, 1, n.guests(t))
}

func guestOfFormerAddress(t *testing.T, n *tenant) {
	post := n.Post(t)
	ada := n.tell(t, "ada", "ada@example.com")["id"]
	first := n.commentOf(t, post, object{"contactId": ada})["authorUserId"]
	n.move(t, ada, "ada@elsewhere.com")
	n.tell(t, "bob", "ada@example.com")
	other := n.commentOf(t, post, object{"externalUserId": "bob"})["authorUserId"]
	require.NotEqual(t, first, other)
	require.Equal(t, first, n.commentOf(t, post, object{"contactId": ada})["authorUserId"])
	require.Equal(t, other, n.commentOf(t, post, object{"externalUserId": "bob"})["authorUserId"])
}

func guestBesideAnother(t *testing.T, n *tenant) {
	post := n.Post(t)
	by := func(id string) any {
		return n.commentOf(t, post, object{"externalUserId": id, "createContact": true})["authorUserId"]
	}
	first, second := by("late"), by("twin")
	n.tell(t, "late", "ada@example.com")
	n.tell(t, "twin", "ada@example.com")
	n.tell(t, "third", "ada@example.com")
	require.Equal(t, []any{first, second, first}, []any{by("late"), by("twin"), by("third")})
}

func guestWithoutContact(t *testing.T, n *tenant) {
	post := n.Post(t)
	made := n.App.Store.Client().User.Create().SetEmail("public").SetName("").SetKind(user.KindGuest).
		SetEmailHash([]byte(n.hashOf("ada@example.com"))).SaveX(n.Context(t.Context()))
	n.tell(t, "ada", "ada@example.com")
	require.Equal(t, made.ID.String(), n.commentOf(t, post, object{"externalUserId": "ada"})["authorUserId"])
}

func commentsFollow(t *testing.T, n *tenant) {
	post := n.Post(t)
	ada := n.tell(t, "ada", "bob@example.com")["id"]
	said := n.commentOf(t, post, object{"contactId": ada})
	n.commentOf(t, post, object{"contactId": ada, "parentId": said["id"]})
	n.Make(t, http.MethodDelete, "/v1/comments/"+said["id"].(string), nil)
	n.voteOf(t, post, object{"contactId": ada}, http.StatusCreated)
	bob := n.tell(t, "bob", "bob@example.com")["id"]
	require.Equal(t, []string{"1 1", "1 1"}, []string{n.contactCounts(t, ada), n.contactCounts(t, bob)})
	n.move(t, ada, "ada@example.com")
	require.Equal(t, []string{"1 1", "0 0"}, []string{n.contactCounts(t, ada), n.contactCounts(t, bob)})
	n.move(t, ada, nil)
	require.Equal(t, "1 1", n.contactCounts(t, ada))
	n.commentOf(t, n.Post(t), object{"externalUserId": "late", "createContact": true})
	require.Equal(t, 3, n.App.Store.Client().Comment.Query().Where(comment.EmailHashIsNil()).CountX(n.Context(t.Context())),
		"a tombstone and the comments of contacts without an address have no hash")
}
