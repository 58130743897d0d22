package feedback_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/user"
	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

func TestAContactsComment(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"has a guest for its author, one a person":               guestWrites,
		"has one guest, however many come at once":               guestsAtOnce,
		"is told with the guest and no key beyond the specified": guestTold,
		"is made with its contact if it is told to":              newcomerWrites,
		"stays, without the contact, when that is deleted":       deletedContactsComment,
		"leaves a tombstone without the contact":                 contactsTombstone,
		"makes no member, and leaves the address to one":         guestIsNoMember,
		"counts for the contact once, as its votes do":           countedOnce,
		"is refused for names that aren't one contact":           badAuthors,
	})
}

func (n *tenant) commentOf(t *testing.T, post string, by object) object {
	t.Helper()
	by["body"] = object{"text": "Letter, please."}
	return n.Make(t, http.MethodPost, post+"/comments", by)
}

func guestWrites(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Identify(t, object{"externalUserId": "ada", "email": "ada@example.com"})
	n.Identify(t, object{"externalUserId": "ada at work", "email": "Ada@Example.com"})
	n.Identify(t, object{"externalUserId": "bo"})
	first := n.commentOf(t, post, object{"externalUserId": "ada"})
	again := n.commentOf(t, post, object{"contactId": first["contactId"], "parentId": first["id"]})
	twin, other := n.commentOf(t, post, object{"externalUserId": "ada at work"}), n.commentOf(t, post, object{"externalUserId": "bo"})
	require.NotNil(t, first["authorUserId"])
	require.Equal(t, []any{first["authorUserId"], first["authorUserId"]}, []any{again["authorUserId"], twin["authorUserId"]})
	require.NotEqual(t, first["contactId"], twin["contactId"])
	require.NotEqual(t, first["authorUserId"], other["authorUserId"])
	listed := n.Do(t, http.MethodGet, post+"/comments", nil).Body["data"]
	require.Equal(t, []any{first, again, twin, other}, listed)
	require.Equal(t, first, n.Get(t, "/v1/comments/"+first["id"].(string)))
	require.Equal(t, 2, n.App.Store.Client().User.Query().Where(user.KindEQ(user.KindGuest)).CountX(n.Context(t.Context())))
}

func guestsAtOnce(t *testing.T, n *tenant) {
	posts := []string{n.Post(t), n.Post(t), n.Post(t)}
	for _, id := range []string{"a", "b"} {
		n.Identify(t, object{"externalUserId": id, "email": "one@example.com"})
	}
	authors := map[any]bool{}
	for _, a := range atOnce(many, func(i int) apptest.Answer {
		return n.Do(t, http.MethodPost, posts[i%3]+"/comments", object{"body": object{"text": "x"}, "externalUserId": []string{"a", "b"}[i%2]})
	}) {
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
		authors[a.Data()["authorUserId"]] = true
	}
	require.Len(t, authors, 1)
}

func guestTold(t *testing.T, n *tenant) {
	n.Listen(t)
	post := n.Post(t)
	made := n.commentOf(t, post, object{"externalUserId": "new", "createContact": true})
	told := n.Payloads(t, event.CommentCreated)
	require.Len(t, told, 1)
	require.Equal(t, object{
		"id": made["id"], "postId": idsOf(post)[0], "parentId": nil, "authorUserId": made["authorUserId"],
		"bodyText": "Letter, please.", "createdAt": made["createdAt"],
	}, told[0]["comment"])
}

func newcomerWrites(t *testing.T, n *tenant) {
	post := n.Post(t)
	unchanged := n.Watch(t)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, post+"/comments", object{"body": object{"text": "x"}, "externalUserId": "new"})
	unchanged(t)
	made := n.commentOf(t, post, object{"externalUserId": "new", "createContact": true})
	require.Equal(t, "new", n.Get(t, "/v1/contacts/"+made["contactId"].(string))["externalUserId"])
}

func deletedContactsComment(t *testing.T, n *tenant) {
	post := n.Post(t)
	made := n.commentOf(t, post, object{"externalUserId": "new", "createContact": true})
	n.Make(t, http.MethodDelete, "/v1/contacts/"+made["contactId"].(string), nil)
	left := n.Get(t, "/v1/comments/"+made["id"].(string))
	made["contactId"], made["updatedAt"] = nil, left["updatedAt"]
	require.Equal(t, made, left)
	again := n.commentOf(t, post, object{"externalUserId": "new", "createContact": true})
	require.NotEqual(t, made["authorUserId"], again["authorUserId"], "without an address nobody knows that it is the same person")
}

func contactsTombstone(t *testing.T, n *tenant) {
	post := n.Post(t)
	made := n.commentOf(t, post, object{"externalUserId": "new", "createContact": true})
	n.Make(t, http.MethodDelete, "/v1/comments/"+made["id"].(string), nil)
	left := n.Get(t, "/v1/comments/"+made["id"].(string))
	require.Equal(t, []any{nil, nil, nil}, []any{left["body"], left["authorUserId"], left["contactId"]})
	require.Equal(t, "0 0", n.contactCounts(t, made["contactId"]))
}

func guestIsNoMember(t *testing.T, n *tenant) {
	post := n.Post(t)
	n.Identify(t, object{"externalUserId": "ada", "email": "ada@example.com"})
	made := n.commentOf(t, post, object{"externalUserId": "ada"})
	guest := made["authorUserId"].(string)
	require.NotContains(t, n.shown(t, "/v1/members", "id"), guest)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, "/v1/members/"+guest, nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, "/v1/api-keys", object{"name": "x", "scope": "read", "memberId": guest})
	member := n.ID(t, "/v1/members", object{"email": "ada@example.com", "name": "Ada", "role": "member"})
	require.NotEqual(t, guest, member)
	require.Equal(t, guest, n.commentOf(t, post, object{"externalUserId": "ada"})["authorUserId"])
}

// contactCounts returns a contact's numbers of votes and comments.
func (n *tenant) contactCounts(t *testing.T, contact any) string {
	t.Helper()
	c := n.Get(t, "/v1/contacts/"+contact.(string))
	return fmt.Sprint(c["voteCount"], " ", c["commentCount"])
}

func countedOnce(t *testing.T, n *tenant) {
	post, other := n.Post(t), n.Post(t)
	ada := n.Identify(t, object{"externalUserId": "ada"})["id"]
	n.voteOf(t, post, object{"contactId": ada}, http.StatusCreated)
	n.commentOf(t, post, object{"contactId": ada})
	require.Equal(t, "1 1", n.contactCounts(t, ada), "without an address")
	n.Identify(t, object{"externalUserId": "ada", "email": "ada@example.com"})
	n.anonymousVote(t, other, n.hashOf("ada@example.com"))
	third := n.Post(t)
	n.voteOf(t, third, object{"contactId": ada}, http.StatusCreated)
	n.commentOf(t, third, object{"contactId": ada})
	require.Equal(t, "3 2", n.contactCounts(t, ada), "some by the address, some by the contact, and one by both")
}

func badAuthors(t *testing.T, n *tenant) {
	post, ada := n.Post(t), n.Identify(t, object{"externalUserId": "ada"})["id"]
	unchanged := n.Watch(t)
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, post+"/comments",
		object{"body": object{"text": "x"}, "contactId": ada, "externalUserId": "ada"})
	require.Equal(t, []string{"externalUserId either"}, apptest.FieldRules(a))
	a = n.Refused(t, "ERR_VALIDATION", http.MethodPost, post+"/comments", object{"body": object{"text": "x"}, "createContact": true})
	require.Equal(t, []string{"externalUserId required"}, apptest.FieldRules(a))
	for field, id := range map[string]string{"contactId": "ctc_none", "externalUserId": "nobody"} {
		a := n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, post+"/comments", object{"body": object{"text": "x"}, field: id})
		require.Equal(t, field, a.Details()["field"])
	}
	unchanged(t)
}
