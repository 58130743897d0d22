package feedback_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

func TestAContactsVote(t *testing.T) {
	t.Parallel()
	togetherOn(t, roomy.Start(t), map[string]func(*testing.T, *tenant){
		"is put and taken by either id":                                  contactVotes,
		"makes the contact by identify's rules if it is told to":         newcomerVotes,
		"makes no contact beyond the plan's cap":                         newcomersOverTheCap,
		"makes no contact where the post isn't there":                    newcomerOnNoPost,
		"is told in an event that has the specified keys and no further": contactVoteTold,
		"is one with that of a person with the same address":             onePersonVotes,
		"is listed with the contact's identity, plan and revenue":        contactVoteListed,
		"stays counted when the contact is deleted":                      deletedContactsVote,
		"is one a person after a merge":                                  contactVotesMerged,
		"is refused for names that aren't one contact":                   badVoters,
		"is the member's without a body, however a client sends none":    bodilessVotes,
	})
}

func (n *tenant) voteOf(t *testing.T, post string, body any, want int) object {
	t.Helper()
	a := n.Do(t, http.MethodPost, post+"/votes", body)
	require.Equal(t, want, a.Status, "%s", a.Raw)
	return a.Data()
}

func contactVotes(t *testing.T, n *tenant) {
	post, ada := n.Post(t), n.Identify(t, object{"externalUserId": "ada"})["id"].(string)
	cast := n.voteOf(t, post, object{"contactId": ada}, http.StatusCreated)
	require.Equal(t, object{
		"id": cast["id"], "postId": idsOf(post)[0], "userId": nil, "contactId": ada, "createdAt": cast["createdAt"],
	}, cast)
	require.Equal(t, cast, n.voteOf(t, post, object{"externalUserId": "ada"}, http.StatusOK))
	n.voteOf(t, post, object{}, http.StatusCreated) // the member's
	require.Equal(t, "2 votes, 2 listed; 0 comments, 0 listed", n.counts(t, post))
	require.Equal(t, cast["id"], n.Make(t, http.MethodDelete, post+"/votes?externalUserId=ada", nil)["id"])
	require.Nil(t, n.Make(t, http.MethodDelete, post+"/votes?contactId="+ada, nil)["id"])
	require.Equal(t, "1 votes, 1 listed; 0 comments, 0 listed", n.counts(t, post))
}

func bodilessVotes(t *testing.T, n *tenant) {
	post := n.Post(t)
	first := n.voteOf(t, post, nil, http.StatusCreated)
	require.Equal(t, n.Owner.ID.String(), first["userId"])
	for _, none := range []struct {
		body any
		as   string
	}{
		{io.MultiReader(), "application/x-www-form-urlencoded"}, {io.MultiReader(), "application/json"},
		{io.MultiReader(strings.NewReader("null")), "application/json"}, {"", "application/x-www-form-urlencoded"}, {"", "text/plain;charset=UTF-8"}, {"", "application/json"},
		{"null", "application/json"}, {" null\n", "application/json"}, {"{}", "application/json"},
	} {
		a := n.Do(t, http.MethodPost, post+"/votes", none.body, "Content-Type", none.as)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		require.Equal(t, first, a.Data())
	}
	for _, form := range []any{"a=b", io.MultiReader(strings.NewReader("a=b")), "null"} {
		require.Equal(t, http.StatusUnsupportedMediaType, n.Do(t, http.MethodPost, post+"/votes", form, "Content-Type", "text/plain").Status)
	}
	n.Refused(t, "ERR_VALIDATION", http.MethodPost, post+"/votes", "[]")
}

func newcomerVotes(t *testing.T, n *tenant) {
	n.Listen(t)
	post := n.Post(t)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, post+"/votes", object{"externalUserId": "new"})
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, post+"/votes", object{"externalUserId": "new", "createContact": false})
	cast := n.voteOf(t, post, object{"externalUserId": "new", "createContact": true}, http.StatusCreated)
	n.voteOf(t, post, object{"externalUserId": "new", "createContact": true}, http.StatusOK)
	made := n.Get(t, "/v1/contacts/"+cast["contactId"].(string))
	require.Equal(t, []any{"new", "identify"}, []any{made["externalUserId"], made["source"]})
	require.Len(t, n.Payloads(t, event.ContactCreated), 1)
	require.Empty(t, n.Payloads(t, event.ContactUpdated))
	require.Len(t, n.Payloads(t, event.VoteCreated), 1)
}

func newcomersOverTheCap(t *testing.T, n *tenant) {
	free := n.on(t, "free")
	post := free.Post(t)
	for _, id := range []string{"a", "b"} {
		free.voteOf(t, post, object{"externalUserId": id, "createContact": true}, http.StatusCreated)
	}
	free.Refused(t, "ERR_PLAN_LIMIT", http.MethodPost, post+"/votes", object{"externalUserId": "c", "createContact": true})
	free.Refused(t, "ERR_PLAN_LIMIT", http.MethodPatch, post, object{"externalUserId": "c", "createContact": true})
	free.Refused(t, "ERR_PLAN_LIMIT", http.MethodPost, free.Board(t)+"/posts", object{"title": "x", "externalUserId": "c", "createContact": true})
	free.voteOf(t, post, object{"externalUserId": "a", "createContact": true}, http.StatusOK)
}

func newcomerOnNoPost(t *testing.T, n *tenant) {
	unchanged := n.Watch(t)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, "/v1/posts/pst_none/votes", object{"externalUserId": "new", "createContact": true})
	unchanged(t)
}

func contactVoteTold(t *testing.T, n *tenant) {
	n.Listen(t)
	post := n.Post(t)
	cast := n.voteOf(t, post, object{"externalUserId": "new", "createContact": true}, http.StatusCreated)
	n.Make(t, http.MethodDelete, post+"/votes?externalUserId=new", nil)
	told := n.Payloads(t, event.VoteCreated)
	require.Len(t, told, 1, "a vote that is taken back tells nothing")
	require.Equal(t, object{"id": cast["id"], "postId": cast["postId"], "userId": nil, "createdAt": cast["createdAt"]}, told[0]["vote"])
}

// hashOf returns the deployment's hash of an address.
func (n *tenant) hashOf(address string) string {
	return string(contacts.HashEmail(n.App.Config.EmailHashKey, address))
}

func onePersonVotes(t *testing.T, n *tenant) {
	ada, _ := n.ada(t)
	twin := object{"externalUserId": n.Identify(t, object{"externalUserId": "another", "email": "Ada@example.com"})["externalUserId"]}
	for who, first := range map[string]func(post string) any{
		"a contact":                 func(post string) any { return n.voteOf(t, post, object{"externalUserId": "u-1"}, 201)["id"] },
		"a member":                  func(post string) any { return ada.voteOf(t, post, nil, 201)["id"] },
		"a voter on a public board": func(post string) any { return n.anonymousVote(t, post, n.hashOf("ada@example.com")) },
	} {
		post := n.Post(t)
		id := first(post)
		require.Equal(t, id, n.voteOf(t, post, object{"externalUserId": "u-1"}, http.StatusOK)["id"], who)
		require.Equal(t, id, n.voteOf(t, post, twin, http.StatusOK)["id"], who)
		require.Equal(t, id, ada.voteOf(t, post, nil, http.StatusOK)["id"], who)
		require.Equal(t, "1 votes, 1 listed; 0 comments, 0 listed", n.counts(t, post), who)
		require.Equal(t, id, ada.Make(t, http.MethodDelete, post+"/votes", nil)["id"], who)
		require.Equal(t, "0 votes, 0 listed; 0 comments, 0 listed", n.counts(t, post), who)
	}
}

func contactVoteListed(t *testing.T, n *tenant) {
	post := n.Post(t)
	traits := object{"email": "ada@example.com", "name": "Ada", "plan": "team", "mrrCents": 4900, "currency": "EUR", "metadata": object{"a": 1}}
	traits["externalUserId"] = "u-1"
	n.Identify(t, traits)
	cast := n.voteOf(t, post, object{"externalUserId": "u-1"}, http.StatusCreated)
	shown := n.Do(t, http.MethodGet, post+"/votes", nil).Body["data"].([]any)
	require.Len(t, shown, 1)
	require.Equal(t, object{
		"id": cast["contactId"], "externalUserId": "u-1", "email": "ada@example.com", "name": "Ada", "plan": "team",
		"mrrCents": json.Number("4900"), "currency": "EUR",
	}, shown[0].(object)["contact"])
	require.Equal(t, cast, apptest.Without(shown[0].(object), "contact"))
}

func deletedContactsVote(t *testing.T, n *tenant) {
	post := n.Post(t)
	cast := n.voteOf(t, post, object{"externalUserId": "u-1", "createContact": true}, http.StatusCreated)
	n.Make(t, http.MethodDelete, "/v1/contacts/"+cast["contactId"].(string), nil)
	cast["contactId"], cast["contact"] = nil, nil
	require.Equal(t, []any{cast}, n.Do(t, http.MethodGet, post+"/votes", nil).Body["data"])
	require.Equal(t, "1 votes, 1 listed; 0 comments, 0 listed", n.counts(t, post))
}

// contactVotesMerged lets persons vote on several posts, with a different identifier on each post.
func contactVotesMerged(t *testing.T, n *tenant) {
	_, posts := n.numbered(t, 3)
	target, a, b := posts[0], posts[1], posts[2]
	member, _ := n.ada(t) // and a contact with one address
	bob := object{"externalUserId": "bob", "createContact": true}
	keptA := n.voteOf(t, a, object{"externalUserId": "u-1"}, http.StatusCreated)["id"]
	member.voteOf(t, b, nil, http.StatusCreated)
	n.voteOf(t, a, bob, http.StatusCreated)
	keptB := n.voteOf(t, target, bob, http.StatusCreated)["id"]
	n.anonymousVote(t, b, n.hashOf("cleo@example.com"))
	keptC := n.anonymousVote(t, target, n.hashOf("cleo@example.com"))
	// This contact gets its address between two votes.
	keptD := n.voteOf(t, a, object{"externalUserId": "dan", "createContact": true}, http.StatusCreated)["id"]
	n.Identify(t, object{"externalUserId": "dan", "email": "dan@example.com"})
	n.voteOf(t, b, object{"externalUserId": "dan"}, http.StatusCreated)
	merged := n.merge(t, target, a, b)
	require.Equal(t, json.Number("4"), merged["voteCount"])
	require.ElementsMatch(t, []any{keptA, keptB, keptC, keptD}, anys(n.shown(t, target+"/votes", "id")))
	require.Equal(t, "4 votes, 4 listed; 0 comments, 0 listed", n.counts(t, target))
}

func anys(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

func badVoters(t *testing.T, n *tenant) {
	post, ada := n.Post(t), n.Identify(t, object{"externalUserId": "ada"})["id"].(string)
	unchanged := n.Watch(t)
	for _, c := range []struct {
		body object
		want string
	}{
		{object{"contactId": ada, "externalUserId": "ada"}, "externalUserId either"},
		{object{"createContact": true}, "externalUserId required"},
		{object{"contactId": ada, "createContact": false}, "externalUserId required"},
		{object{"contactId": nil}, "contactId type"},
		{object{"contactId": ""}, "contactId minLength"},
		{object{"externalUserId": strings.Repeat("x", 256)}, "externalUserId maxLength"},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, post+"/votes", c.body)
		require.Equal(t, []string{c.want}, apptest.FieldRules(a), fmt.Sprint(c.body))
	}
	a := n.Refused(t, "ERR_VALIDATION", http.MethodDelete, post+"/votes?contactId="+ada+"&externalUserId=ada", nil)
	require.Equal(t, []string{"externalUserId either"}, apptest.FieldRules(a))
	for field, id := range map[string]string{"contactId": "ctc_none", "externalUserId": "nobody"} {
		a := n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, post+"/votes", object{field: id})
		require.Equal(t, field, a.Details()["field"])
	}
	a = n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, post+"/votes?contactId=ctc_none", nil)
	require.Equal(t, "contactId", a.Details()["field"])
	require.Nil(t, n.Make(t, http.MethodDelete, post+"/votes?externalUserId=nobody", nil)["id"])
	unchanged(t)
}
