package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

// contactsWith returns the contacts with an address.
func (v *visitor) contactsWith(t *testing.T, email string) []any {
	t.Helper()
	return v.Do(t, http.MethodGet, "/v1/contacts?email="+url.QueryEscape(email), nil).Body["data"].([]any)
}

func optIns(t *testing.T, v *visitor) {
	receiver := testkit.NewReceiver(t)
	v.Register(t, receiver, "contact.created")
	id := v.post(t, "Dark mode", nil)
	at := v.at + "/dark-mode"
	for kind, path := range map[string]string{"public_vote": at + "/-/vote", "public_post": v.at + "/-/new", "public_comment": at + "/-/comment"} {
		for _, ticked := range []bool{false, true} {
			v.cookie = nil
			email := v.address(kind + map[bool]string{false: "-no", true: "-yes"}[ticked])
			// The box has no effect in the form, because anyone may enter any address there.
			v.fill(t, path, v.filled(email, "title", "Mine "+kind, "text", "Words", "optIn", "1"))
			require.Empty(t, v.contactsWith(t, email), "nobody is a contact before the address is known to be theirs")
			link, _ := v.link(t, email, 1)
			require.Contains(t, v.do(t, http.MethodGet, link, nil).body, `<input type="checkbox" name="optIn" value="1">`, "the box isn't ticked")
			require.Equal(t, http.StatusOK, v.pressWith(t, link, ticked).StatusCode)
			found := v.contactsWith(t, email)
			if !ticked {
				require.Empty(t, found)
				continue
			}
			require.Len(t, found, 1)
			c := found[0].(object)
			require.Equal(t, kind, c["source"])
			require.Equal(t, "public_interaction_opt_in", c["consentBasis"])
			require.Equal(t, "Ada", c["name"])
		}
	}
	require.Len(t, receiver.Await(t, 3), 3)
	votes := v.votes(t, id)
	require.Len(t, votes, 2)
	require.NotEqual(t, votes[0].(object)["contactId"] == nil, votes[1].(object)["contactId"] == nil, "one of them opted in")

	// An existing contact stays the same.
	known := v.ID(t, "/v1/contacts", object{"email": v.address("known"), "name": "Kim"})
	v.cookie = nil
	v.fill(t, at+"/-/vote", v.filled(v.address("known")))
	link, _ := v.link(t, v.address("known"), 1)
	v.pressWith(t, link, true)
	found := v.contactsWith(t, v.address("known"))
	require.Len(t, found, 1)
	c := found[0].(object)
	require.Equal(t, []any{known, "admin", "admin_created", "Kim"}, []any{c["id"], c["source"], c["consentBasis"], c["name"]})
	require.Equal(t, known, v.votes(t, id)[0].(object)["contactId"])
}

func TestAtTheContactCapAnInteractionCountsAndTheContactIsLeftOut(t *testing.T) {
	t.Parallel()
	v := newVisitor(t, published.Start(t).TenantOn(t, "free"))
	v.ID(t, "/v1/contacts", object{"email": "first@example.com"})
	id := v.post(t, "Dark mode", nil)
	v.fill(t, v.at+"/dark-mode/-/vote", v.filled(v.address("ada")))
	link, _ := v.link(t, v.address("ada"), 1)
	require.Equal(t, http.StatusOK, v.pressWith(t, link, true).StatusCode)
	require.Empty(t, v.contactsWith(t, v.address("ada")))
	votes := v.votes(t, id)
	require.Len(t, votes, 1)
	require.Nil(t, votes[0].(object)["contactId"])
}
