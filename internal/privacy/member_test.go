package privacy_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/user"
	"earshot/internal/access"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestTheErasureOfARemovedMember(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *tenant){
		"leaves the member's texts with a neutral author":                      eraseMemberLeavesTexts,
		"is refused for a member who is not removed":                           eraseMemberRefusesMembers,
		"changes nothing when it is repeated":                                  eraseMemberTwice,
		"leaves contacts and guests with the address as they are":              eraseMemberLeavesContacts,
		"is for owners and admins, and knows only members of the organization": eraseMemberRoles,
		"may be done by the operator":                                          eraseMemberByOperator,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newTenant(t, apptest.Start(t, apptest.Options{})))
		})
	}
}

const (
	memberAddress = "kim.osei@northwind.example"
	memberName    = "Kim Osei"
)

// member adds a member who votes and comments, and returns them with the comment.
func (n *tenant) member(t *testing.T, role string) (as *tenant, comment string) {
	t.Helper()
	made, _ := n.keyed(t, http.MethodPost, "/v1/members", object{"email": memberAddress, "name": memberName, "role": role})
	require.Equal(t, http.StatusCreated, made.Status, "%s", made.Raw)
	row, err := n.App.Store.Client().User.Get(n.Context(t.Context()), publicid.Read[publicid.User](made.Data()["id"].(string)))
	require.NoError(t, err)
	kim := *n
	kim.Tenant = n.As(t, row)
	kim.Make(t, http.MethodPost, "/v1/posts/"+n.post+"/votes", nil)
	kim.ID(t, "/v1/api-keys", object{"name": "Laptop of " + memberName, "scope": "read"})
	return &kim, kim.ID(t, "/v1/posts/"+n.post+"/comments", object{"body": object{"text": "Soon."}})
}

// removed adds a member and removes it again.
func (n *tenant) removed(t *testing.T) (id, comment string) {
	t.Helper()
	kim, comment := n.member(t, "member")
	id = kim.Owner.ID.String()
	n.Make(t, http.MethodDelete, "/v1/members/"+id, nil)
	return id, comment
}

func TestTheErasureOfARemovedMemberLeavesNoTraceInTheWholeDatabase(t *testing.T) {
	t.Parallel()
	n := newTenant(t, apptest.Start(t, apptest.Options{Alone: true}))
	id, _ := n.removed(t)
	traces := []string{memberAddress, memberName, hex.EncodeToString(hashOf(n, memberAddress))}
	for _, text := range traces {
		require.NotEmpty(t, n.tracesAnywhere(t, text), "the search finds what there is")
	}
	n.Make(t, http.MethodPost, "/v1/members/"+id+"/erase", nil)
	require.Empty(t, n.tracesAnywhere(t, traces...))
}

func eraseMemberLeavesTexts(t *testing.T, n *tenant) {
	id, comment := n.removed(t)
	counts := n.counts(t)
	require.Equal(t, id, n.Make(t, http.MethodPost, "/v1/members/"+id+"/erase", nil)["id"])
	require.Equal(t, counts, n.counts(t))
	c := n.Make(t, http.MethodGet, "/v1/comments/"+comment, nil)
	require.Equal(t, []any{id, "Soon."}, []any{c["authorUserId"], c["body"].(object)["text"]})
	of := publicid.Read[publicid.User](id)
	authors, err := n.App.Feedback.Authors(n.Context(t.Context()), []publicid.User{of})
	require.NoError(t, err)
	require.Equal(t, []any{"", false}, []any{authors[of].Name, authors[of].Guest}, "pages say: a former member")
	a, replayed := n.keyed(t, http.MethodPost, "/v1/members", object{"email": memberAddress, "name": memberName, "role": "member"})
	require.False(t, replayed, "the kept answer named the member")
	require.NotEqual(t, id, a.Data()["id"], "whoever has the address next is somebody else")
}

func eraseMemberRefusesMembers(t *testing.T, n *tenant) {
	kim, _ := n.member(t, "member")
	unchanged := n.Watch(t)
	a := n.Do(t, http.MethodPost, "/v1/members/"+kim.Owner.ID.String()+"/erase", nil)
	require.Equal(t, http.StatusConflict, a.Status, "%s", a.Raw)
	require.Equal(t, "member_not_removed", a.Details()["reason"])
	unchanged(t)
}

func eraseMemberTwice(t *testing.T, n *tenant) {
	id, _ := n.removed(t)
	n.Make(t, http.MethodPost, "/v1/members/"+id+"/erase", nil)
	unchanged := n.Watch(t)
	require.Equal(t, id, n.Make(t, http.MethodPost, "/v1/members/"+id+"/erase", nil)["id"])
	unchanged(t)
}

func eraseMemberLeavesContacts(t *testing.T, n *tenant) {
	same := n.ID(t, "/v1/contacts", object{"email": memberAddress, "name": memberName})
	n.Make(t, http.MethodPost, "/v1/posts/"+n.other+"/votes", object{"contactId": same})
	n.ID(t, "/v1/posts/"+n.other+"/comments", object{"contactId": same, "body": object{"text": "Please"}})
	id, _ := n.removed(t)
	n.Make(t, http.MethodPost, "/v1/members/"+id+"/erase", nil)
	c := n.Make(t, http.MethodGet, "/v1/contacts/"+same, nil)
	require.Equal(t, []any{memberAddress, memberName}, []any{c["email"], c["name"]})
	require.Equal(t, "1 1", fmt.Sprint(c["voteCount"], " ", c["commentCount"]), "the contact's own alone")
}

func eraseMemberRoles(t *testing.T, n *tenant) {
	id, _ := n.removed(t)
	for _, role := range []user.Role{user.RoleMember, user.RoleAdmin} {
		m, err := n.App.Access.EnlistMember(n.Context(t.Context()),
			access.NewMember{Email: string(role) + "@example.com", Name: "M", Role: string(role)})
		require.NoError(t, err)
		a := n.As(t, m).Do(t, http.MethodPost, "/v1/members/"+id+"/erase", nil)
		require.Equal(t, role == user.RoleAdmin, a.Status == http.StatusOK, "%s: %s", role, a.Raw)
		if role == user.RoleMember {
			require.Equal(t, "role_insufficient", a.Details()["reason"])
		}
	}
	for _, unknown := range []string{publicid.NewUser().String(), n.guest(t)} {
		require.Equal(t, http.StatusNotFound, n.Do(t, http.MethodPost, "/v1/members/"+unknown+"/erase", nil).Status)
	}
	other := n.App.Tenant(t)
	require.Equal(t, http.StatusNotFound, other.Do(t, http.MethodPost, "/v1/members/"+id+"/erase", nil).Status)
}

// guest returns the guest user of a contact who has commented.
func (n *tenant) guest(t *testing.T) string {
	t.Helper()
	found, err := n.App.Store.Client().User.Query().Where(user.KindEQ(user.KindGuest)).First(n.Context(t.Context()))
	require.NoError(t, err)
	return found.ID.String()
}

func eraseMemberByOperator(t *testing.T, n *tenant) {
	id, _ := n.removed(t)
	found, err := n.App.Access.RemovedMemberByEmail(n.Context(t.Context()), "Kim.Osei@northwind.example")
	require.NoError(t, err)
	require.Equal(t, id, found.ID.String())
	require.NoError(t, n.App.Privacy.EraseMemberAsOperator(n.Context(t.Context()), found.ID))
	require.Empty(t, n.traces(t, memberAddress, memberName))
	_, err = n.App.Access.RemovedMemberByEmail(n.Context(t.Context()), memberAddress)
	require.Error(t, err)
}
