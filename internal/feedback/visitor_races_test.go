package feedback_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

func TestContactsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	togetherOn(t, roomy.Start(t), map[string]func(*testing.T, *tenant){
		"vote, comment and retract, while they are forgotten and posts are merged": contactsAmid,
		"learn one address, while contacts with that address vote and comment":     addressesAmid,
	})
}

// doing returns concurrent requests of one contact on some posts.
func doing(n *tenant, id string, posts []string) []request {
	on := func() string { return posts[rand.IntN(len(posts))] }
	return []request{
		{n, http.MethodPost, on() + "/votes", object{"externalUserId": id, "createContact": true}},
		{n, http.MethodPost, on() + "/votes", object{"externalUserId": id, "createContact": true}},
		{n, http.MethodPost, on() + "/comments", object{"body": object{"text": "x"}, "externalUserId": id, "createContact": true}},
		{n, http.MethodDelete, on() + "/votes?externalUserId=" + id, nil},
	}
}

func contactsAmid(t *testing.T, n *tenant) {
	member, _ := n.ada(t)
	for range tier.Repeats() / 2 {
		_, posts := n.numbered(t, 4)
		ids := idsOf(posts...)
		all := []request{merging(n, ids[0], ids[2]), merging(n, ids[1], ids[3]), voting(member, ids[0]), voting(member, ids[2])}
		for i := range 4 {
			id := fmt.Sprint("c", i)
			all = append(all, doing(n, id, posts)...)
			all = append(all, request{n, http.MethodDelete, "/v1/contacts/" + n.tell(t, id, "ada@example.com")["id"].(string), nil})
			for _, p := range posts[:2] {
				all = append(all, request{n, http.MethodGet, p + "/votes", nil})
			}
		}
		h := hear(t, shuffled(append(all, doing(n, "u-1", posts)...)))
		only(t, h.answers, http.StatusOK, http.StatusCreated, http.StatusNoContent, http.StatusNotFound, http.StatusConflict)
		for _, a := range h.answers {
			shownWhole(t, a)
		}
		n.mergesAreSound(t, ids)
		n.addressesAreFollowed(t)
	}
}

// shownWhole checks that a list of votes contains the contacts of its votes.
func shownWhole(t *testing.T, a apptest.Answer) {
	t.Helper()
	listed, _ := a.Body["data"].([]any)
	for _, v := range listed {
		assert.Equal(t, v.(object)["contactId"] == nil, v.(object)["contact"] == nil, "%v", v)
	}
}

// addressesAmid gives several contacts the same address, while their votes are looked up, inserted
// and moved. The locks of posts do not block a change of the address, so a conflicting vote may
// appear in between.
func addressesAmid(t *testing.T, n *tenant) {
	member, _ := n.ada(t)
	for round := range tier.Repeats() {
		_, posts := n.numbered(t, 3)
		ids, contacts := idsOf(posts...), make([]string, 4)
		var before, during []request
		for i := range contacts {
			id := fmt.Sprint(round, "-", i)
			contacts[i] = n.Identify(t, object{"externalUserId": id})["id"].(string)
			for _, p := range posts[:2] {
				before = append(before, request{n, http.MethodPost, p + "/votes", object{"externalUserId": id}})
			}
			before = append(before, doing(n, id, posts)[2])
			during = append(during, doing(n, id, posts)...)
			if i%2 == 0 {
				during = append(during, request{n, http.MethodPost, "/v1/contacts/identify", object{"externalUserId": id, "email": "ada@example.com"}})
			} else {
				during = append(during, request{n, http.MethodPatch, "/v1/contacts/" + contacts[i], object{"email": "ada@example.com"}})
			}
		}
		only(t, race(t, before), http.StatusCreated)
		during = append(during, doing(n, "u-1", posts)...)
		during = append(during, merging(n, ids[2], ids[0]), voting(member, ids[1]), voting(member, ids[2]))
		only(t, race(t, shuffled(during)), http.StatusOK, http.StatusCreated)
		n.mergesAreSound(t, ids)
		n.addressesAreFollowed(t)
	}
}

// addressesAreFollowed checks that the votes and the guest users of contacts have the contacts'
// addresses.
func (n *tenant) addressesAreFollowed(t *testing.T) {
	t.Helper()
	for _, table := range []string{"votes", "users"} {
		var wrong int
		require.NoError(t, n.App.Pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table+` d JOIN contacts c ON c.id = d.contact_id
			WHERE d.email_hash IS NOT NULL AND d.email_hash IS DISTINCT FROM c.email_hash AND d.organization_id = $1`, n.Organization.ID.UUID()).Scan(&wrong))
		require.Zero(t, wrong, table)
	}
}
