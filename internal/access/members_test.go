package access_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/ent/db/user"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

const membersPath = "/v1/members"

func TestAMember(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is made with a trimmed name, an address in lower case and the role member": newMember,
		"is refused with every failure at once":                                     badMembers,
		"has an address that no other member has, however it is written":            takenAddresses,
		"votes, comments and posts by keys of their own":                            ownVotes,
		"gets another name and role, and sending them again changes nothing":        changeMember,
		"is one of 1,000 at most":                                                   memberCap,
	})
}

func TestARemovedMember(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"has no key that is valid, and isn't there":                 removeMember,
		"leaves votes and comments that name them":                  whatStays,
		"is the same user when added again, with no key of before":  addedAgain,
		"gets no key in the moment in which theirs are still taken": removedJustNow,
		"gets no key that is made at the same time":                 removedMeanwhile,
	})
}

func TestTheLastOwner(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"isn't removed and keeps the role, but may be renamed":   lastOwner,
		"is one of two owners who resign at once":                ownersResign,
		"is one of two owners who demote each other at once":     ownersDemote,
		"is one of two of whom one leaves and the other resigns": ownersGo,
	})
}

func TestARole(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"says which members somebody may manage":         rolesOverMembers,
		"says whose keys somebody may make and revoke":   rolesOverKeys,
		"that was taken a moment ago counts for nothing": demotedJustNow,
		"bears on nothing else":                          rolesElsewhere,
	})
}

// add creates a member with the role and returns the tenant with a key of that member.
func (n *tenant) add(t *testing.T, role, email string) *tenant {
	t.Helper()
	id := n.ID(t, membersPath, object{"email": email, "name": "Somebody", "role": role})
	member, err := n.App.Store.Client().User.Get(n.Context(t.Context()), publicid.Read[publicid.User](id))
	require.NoError(t, err)
	return n.as(t, member)
}

// path returns the member's path.
func (n *tenant) path() string { return membersPath + "/" + n.Owner.ID.String() }

// forbidden requires that the request is refused because of the role.
func (n *tenant) forbidden(t *testing.T, method, path string, body any) {
	t.Helper()
	require.Equal(t, "role_insufficient", n.Refused(t, "ERR_FORBIDDEN", method, path, body).Details()["reason"])
}

func newMember(t *testing.T, n *tenant) {
	made := n.Make(t, http.MethodPost, membersPath, object{"email": " Kim@Example.COM ", "name": " Kim Osei "})
	require.Equal(t, object{"email": "kim@example.com", "name": "Kim Osei", "role": "member"},
		apptest.Without(made, "id", "createdAt", "updatedAt"))
	require.Equal(t, made, n.Get(t, membersPath+"/"+made["id"].(string)))
	all := n.Do(t, http.MethodGet, membersPath, nil).Body["data"].([]any)
	require.Equal(t, n.Owner.ID.String(), all[0].(object)["id"])
	require.Equal(t, []any{made}, all[1:])
}

func badMembers(t *testing.T, n *tenant) {
	for why, test := range map[string]struct {
		body  any
		rules []string
	}{
		"empty and unknown": {object{"email": " ", "name": " ", "role": "boss"}, []string{"name minLength", "role enum"}},
		"no address":        {object{"email": " ", "name": "x"}, []string{"email format"}},
		"too long": {
			object{"email": strings.Repeat("x", 320) + "@example.com", "name": strings.Repeat("é", 201)},
			[]string{"email maxLength", "name maxLength"},
		},
		"control characters": {object{"email": "x@example.com", "name": "Kim\x1b[2J"}, []string{"name pattern"}},
		"a line of its own":  {object{"email": "x@example.com", "name": "Kim\nPay here"}, []string{"name pattern"}},
		"left out":           {object{}, []string{"email required", "name required"}},
		"null":               {object{"email": nil, "name": nil, "role": nil}, []string{"email type", "name type", "role type"}},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, membersPath, test.body)
		require.Subset(t, apptest.FieldRules(a), test.rules, why)
	}
	_, err := n.App.Access.EnlistMember(n.Context(t.Context()), access.NewMember{Email: "x@example.com", Name: "Kim\u009b2J", Role: "member"})
	require.True(t, problem.Is(err, problem.Validation), "%v", err)
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPatch, n.path(), object{"name": "", "role": "boss"})
	require.ElementsMatch(t, []string{"name minLength", "role enum"}, apptest.FieldRules(a))
}

func takenAddresses(t *testing.T, n *tenant) {
	n.add(t, "member", "kim@example.com")
	// The owner's address was stored before addresses were lower-cased.
	n.App.Store.Client().User.UpdateOne(n.Owner).SetEmail("Owner@Example.com").ExecX(n.Context(t.Context()))
	for _, email := range []string{"kim@example.com", "KIM@example.com ", "owner@example.com"} {
		a := n.Refused(t, "ERR_CONFLICT", http.MethodPost, membersPath, object{"email": email, "name": "x"})
		require.Equal(t, "email", a.Details()["field"])
	}
	n.on(t, "business").add(t, "member", "kim@example.com") // a member of another organization
}

func ownVotes(t *testing.T, n *tenant) {
	member := n.Make(t, http.MethodPost, membersPath, object{"email": "kim@example.com", "name": "Kim"})
	made := n.NewKeyOf(t, object{"name": "Kim's", "scope": "read:write", "memberId": member["id"]})
	require.Equal(t, member["id"], made["userId"])
	require.Equal(t, member["id"], n.listed(t, made["id"])["userId"])
	kim, post := n.by(made["key"]), n.Post(t)
	require.Equal(t, object{"id": member["id"], "email": "kim@example.com", "name": "Kim", "role": "member"}, kim.Get(t, "/v1/me")["user"])

	require.Equal(t, n.Owner.ID.String(), n.Make(t, http.MethodPost, post+"/votes", nil)["userId"])
	require.Equal(t, member["id"], kim.Make(t, http.MethodPost, post+"/votes", nil)["userId"])
	require.Equal(t, http.StatusOK, kim.Do(t, http.MethodPost, post+"/votes", nil).Status, "one each")
	require.EqualValues(t, "2", n.Get(t, post)["voteCount"])
	comment := kim.Make(t, http.MethodPost, post+"/comments", object{"body": object{"text": "Me too."}})
	require.Equal(t, member["id"], comment["authorUserId"])
}

func changeMember(t *testing.T, n *tenant) {
	kim := n.add(t, "member", "kim@example.com")
	before := n.Get(t, kim.path())
	after := n.Patch(t, kim.path(), object{"name": " Kim O. ", "role": "admin"})
	require.Equal(t, object{"name": "Kim O.", "role": "admin", "email": "kim@example.com"},
		apptest.Without(after, "id", "createdAt", "updatedAt"))
	apptest.Later(t, after, before, "updatedAt")
	unchanged := n.Watch(t)
	n.Refused(t, "ERR_VALIDATION", http.MethodPatch, kim.path(), object{"email": "other@example.com"})
	require.Equal(t, after, n.Patch(t, kim.path(), after))
	require.Equal(t, after, n.Patch(t, kim.path(), object{}))
	unchanged(t)
}

func memberCap(t *testing.T, n *tenant) {
	ctx, client := n.Context(t.Context()), n.App.Store.Client()
	var emails []string
	for i := 1; i < 1000; i++ {
		emails = append(emails, strings.Repeat("x", i%60+1)+strings.Repeat("y", i/60+1)+"@example.com")
	}
	client.User.MapCreateBulk(emails, func(c *db.UserCreate, i int) { c.SetEmail(emails[i]).SetName("x").SetRole(user.RoleMember) }).ExecX(ctx)
	a := n.Refused(t, "ERR_PLAN_LIMIT", http.MethodPost, membersPath, object{"email": "kim@example.com", "name": "x"})
	require.Equal(t, "member", a.Details()["resource"])
	taken := n.Refused(t, "ERR_CONFLICT", http.MethodPost, membersPath, object{"email": emails[0], "name": "x"})
	require.Equal(t, "email", taken.Details()["field"], "which is told first")
	last := client.User.Query().Where(user.Email(emails[0])).OnlyX(ctx)
	n.Make(t, http.MethodDelete, membersPath+"/"+last.ID.String(), nil)
	n.add(t, "member", "kim@example.com") // makes room
}

func removeMember(t *testing.T, n *tenant) {
	kim := n.add(t, "member", "kim@example.com")
	spare := kim.NewKeyOf(t, object{"name": "spare", "scope": "read"})
	require.Equal(t, object{"id": kim.Owner.ID.String()}, n.Make(t, http.MethodDelete, kim.path(), nil))
	kim.ends(t, kim.Key)
	kim.ends(t, spare["key"])
	require.NotNil(t, n.listed(t, spare["id"])["revokedAt"])
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, kim.path(), nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPatch, kim.path(), object{"name": "x"})
	n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, kim.path(), nil)
	a := n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, apptest.KeysPath, object{"name": "x", "scope": "read", "memberId": kim.Owner.ID.String()})
	require.Equal(t, "memberId", a.Details()["field"])
	require.Len(t, n.Do(t, http.MethodGet, membersPath, nil).Body["data"], 1)
	n.Make(t, http.MethodDelete, apptest.KeysPath+"/"+spare["id"].(string), nil) // a second time has no effect
}

func whatStays(t *testing.T, n *tenant) {
	kim, post := n.add(t, "member", "kim@example.com"), n.Post(t)
	kim.Make(t, http.MethodPost, post+"/votes", nil)
	comment := kim.Comment(t, post, "")
	votes := n.Do(t, http.MethodGet, post+"/votes", nil).Body["data"]
	n.Make(t, http.MethodDelete, kim.path(), nil)
	require.Equal(t, votes, n.Do(t, http.MethodGet, post+"/votes", nil).Body["data"])
	require.Equal(t, kim.Owner.ID.String(), n.Get(t, "/v1/comments/"+comment)["authorUserId"])
	require.EqualValues(t, "1", n.Get(t, post)["voteCount"])
}

func addedAgain(t *testing.T, n *tenant) {
	kim, post := n.add(t, "admin", "kim@example.com"), n.Post(t)
	kim.Make(t, http.MethodPost, post+"/votes", nil)
	n.Make(t, http.MethodDelete, kim.path(), nil)
	again := n.add(t, "member", "Kim@example.com")
	require.Equal(t, kim.Owner.ID, again.Owner.ID)
	require.Equal(t, "member", n.Get(t, again.path())["role"])
	kim.ends(t, kim.Key)
	require.Equal(t, http.StatusOK, again.Do(t, http.MethodPost, post+"/votes", nil).Status, "it was there already")
}

// remembered returns a caller as a process has cached it.
func (n *tenant) remembered(t *testing.T) *change.Caller {
	t.Helper()
	caller, err := n.App.Access.Authenticate(t.Context(), n.Key)
	require.NoError(t, err)
	return caller
}

func removedJustNow(t *testing.T, n *tenant) {
	kim := n.add(t, "admin", "kim@example.com")
	ctx := change.WithCaller(t.Context(), kim.remembered(t))
	n.Make(t, http.MethodDelete, kim.path(), nil)
	unchanged := n.Watch(t)
	_, err := n.App.Access.MintAPIKey(ctx, nil, access.NewAPIKey{Name: "x", Scope: "read"}, change.Request[*access.IssuedKey]{})
	require.True(t, problem.Is(err, problem.Unauthorized), "%v", err)
	_, err = n.App.Access.CreateMember(ctx, access.NewMember{Email: "kim@example.com", Name: "x", Role: "admin"},
		change.Request[*db.User]{})
	require.True(t, problem.Is(err, problem.Unauthorized), "%v", err)
	unchanged(t)
}

func removedMeanwhile(t *testing.T, n *tenant) {
	for range 10 {
		kim := n.add(t, "member", "kim@example.com")
		n.atOnce(t, func() { n.Do(t, http.MethodDelete, kim.path(), nil) }, func() {
			kim.Do(t, http.MethodPost, apptest.KeysPath, object{"name": "x", "scope": "read"})
		})
		left := n.App.Store.Client().APIKey.Query().Where(apikey.UserID(kim.Owner.ID), apikey.RevokedAtIsNil()).CountX(n.Context(t.Context()))
		require.Zero(t, left)
	}
}

func (n *tenant) atOnce(t *testing.T, all ...func()) {
	t.Helper()
	var under sync.WaitGroup
	for _, fn := range all {
		under.Go(fn)
	}
	under.Wait()
}

func lastOwner(t *testing.T, n *tenant) {
	n.add(t, "admin", "kim@example.com")
	for _, role := range []string{"admin", "member"} {
		a := n.Refused(t, "ERR_CONFLICT", http.MethodPatch, n.path(), object{"name": "x", "role": role})
		require.Equal(t, "last_owner", a.Details()["reason"])
	}
	require.Equal(t, "last_owner", n.Refused(t, "ERR_CONFLICT", http.MethodDelete, n.path(), nil).Details()["reason"])
	require.Equal(t, "Olive", n.Patch(t, n.path(), object{"name": "Olive", "role": "owner"})["name"])
}

// twoOwners makes two owners act at the same time, repeatedly, and requires that one of them stays
// an owner.
func (n *tenant) twoOwners(t *testing.T, first, second func(a, b *tenant) apptest.Answer) {
	t.Helper()
	for range 10 {
		of := n.on(t, "business")
		other := of.add(t, "owner", "second@example.com")
		var answers [2]apptest.Answer
		n.atOnce(t, func() { answers[0] = first(of, other) }, func() { answers[1] = second(of, other) })
		owners := of.App.Store.Client().User.Query().Where(user.RoleEQ(user.RoleOwner)).CountX(of.Context(t.Context()))
		require.Equal(t, 1, owners)
		done := 0
		for _, a := range answers {
			if a.Status == http.StatusOK {
				done++
				continue
			}
			require.Contains(t, []any{"last_owner", "role_insufficient"}, a.Details()["reason"], "%s", a.Raw)
		}
		require.Equal(t, 1, done)
	}
}

var demotion = object{"role": "member"}

func ownersResign(t *testing.T, n *tenant) {
	n.twoOwners(t,
		func(a, _ *tenant) apptest.Answer { return a.Do(t, http.MethodPatch, a.path(), demotion) },
		func(_, b *tenant) apptest.Answer { return b.Do(t, http.MethodPatch, b.path(), demotion) })
}

func ownersDemote(t *testing.T, n *tenant) {
	n.twoOwners(t,
		func(a, b *tenant) apptest.Answer { return a.Do(t, http.MethodPatch, b.path(), demotion) },
		func(a, b *tenant) apptest.Answer { return b.Do(t, http.MethodPatch, a.path(), demotion) })
}

func ownersGo(t *testing.T, n *tenant) {
	n.twoOwners(t,
		func(a, _ *tenant) apptest.Answer { return a.Do(t, http.MethodDelete, a.path(), nil) },
		func(_, b *tenant) apptest.Answer { return b.Do(t, http.MethodPatch, b.path(), demotion) })
}

func rolesOverMembers(t *testing.T, n *tenant) {
	admin, kim := n.add(t, "admin", "admin@example.com"), n.add(t, "member", "kim@example.com")
	other := n.add(t, "admin", "other@example.com")
	stranger := object{"email": "new@example.com", "name": "x"}
	kim.forbidden(t, http.MethodPost, membersPath, stranger)
	for _, whose := range []*tenant{n, admin, kim} {
		kim.forbidden(t, http.MethodPatch, whose.path(), object{"name": "x"})
		kim.forbidden(t, http.MethodDelete, whose.path(), nil)
	}
	admin.forbidden(t, http.MethodPost, membersPath, object{"email": "new@example.com", "name": "x", "role": "owner"})
	for _, whose := range []*tenant{admin, kim} {
		admin.forbidden(t, http.MethodPatch, whose.path(), object{"role": "owner"})
	}
	admin.forbidden(t, http.MethodPatch, n.path(), object{"name": "x"})
	admin.forbidden(t, http.MethodDelete, n.path(), nil)

	admin.ID(t, membersPath, object{"email": "second@example.com", "name": "x", "role": "admin"})
	admin.Patch(t, kim.path(), object{"role": "admin"})
	admin.Patch(t, other.path(), object{"role": "member"})
	admin.Make(t, http.MethodDelete, other.path(), nil)
	n.Patch(t, admin.path(), object{"role": "owner"})
	require.Len(t, kim.Do(t, http.MethodGet, membersPath, nil).Body["data"], 4, "whoever reads")
}

func rolesOverKeys(t *testing.T, n *tenant) {
	admin, kim := n.add(t, "admin", "admin@example.com"), n.add(t, "member", "kim@example.com")
	key := func(of *tenant) object {
		return object{"name": "x", "scope": "read", "memberId": of.Owner.ID.String()}
	}
	for by, whose := range map[*tenant][]*tenant{kim: {n, admin}, admin: {n}} {
		for _, of := range whose {
			by.forbidden(t, http.MethodPost, apptest.KeysPath, key(of))
			theirs := of.NewKeyOf(t, object{"name": "x", "scope": "read"})
			by.forbidden(t, http.MethodDelete, apptest.KeysPath+"/"+theirs["id"].(string), nil)
		}
	}
	for by, whose := range map[*tenant][]*tenant{kim: {kim}, admin: {admin, kim}, n: {n, admin, kim}} {
		for _, of := range whose {
			made := by.NewKeyOf(t, key(of))
			require.Equal(t, of.Owner.ID.String(), made["userId"])
			by.Make(t, http.MethodDelete, apptest.KeysPath+"/"+made["id"].(string), nil)
		}
	}
}

func demotedJustNow(t *testing.T, n *tenant) {
	admin := n.add(t, "admin", "admin@example.com")
	ctx := change.WithCaller(t.Context(), admin.remembered(t))
	n.Patch(t, admin.path(), demotion)
	unchanged := n.Watch(t)
	_, err := n.App.Access.CreateMember(ctx, access.NewMember{Email: "new@example.com", Name: "x", Role: "admin"},
		change.Request[*db.User]{})
	require.True(t, problem.Is(err, problem.Forbidden), "%v", err)
	unchanged(t)
}

func rolesElsewhere(t *testing.T, n *tenant) {
	kim := n.add(t, "member", "kim@example.com")
	kim.Patch(t, kim.Post(t), object{"status": "planned"})
	kim.ID(t, "/v1/webhooks", apptest.Registration)
	own := kim.NewKeyOf(t, object{"name": "x", "scope": "read:write"})
	kim.Make(t, http.MethodPost, apptest.KeysPath+"/"+own["id"].(string)+"/rotate", object{})
}
