package access_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/access"
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestAKeyMadeForAnotherMember(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is revoked when its maker is removed, and no other":                    makerRemoved,
		"is revoked when its maker may manage its member no more":               makerDemoted,
		"is revoked when its member rises above its maker":                      memberPromoted,
		"is revoked with the keys that were made and rotated by means of it":    madeByMeansOf,
		"is revoked with its maker, though another made the key it was made by": makersMaker,
	})
}

func TestAKeyThatEndedAMomentAgoChangesNoKeyAndNoMember(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"revoked": func(t *testing.T, n *tenant) {
			n.endedJustNow(t, func(_ *tenant, id string) { n.Make(t, http.MethodDelete, apptest.KeysPath+"/"+id, nil) })
		},
		"rotated without an overlap": func(t *testing.T, n *tenant) {
			n.endedJustNow(t, func(kim *tenant, id string) { kim.rotate(t, id, 0) })
		},
	})
}

func (n *tenant) endedJustNow(t *testing.T, end func(kim *tenant, id string)) {
	t.Helper()
	kim := n.add(t, "admin", "kim@example.com")
	caller, spare := kim.remembered(t), kim.NewKeyOf(t, object{"name": "x", "scope": "read"})["id"]
	ctx := change.WithCaller(t.Context(), caller)
	end(kim, caller.Key.ID.String())
	unchanged := n.Watch(t)
	_, err := n.App.Access.MintAPIKey(ctx, nil, access.NewAPIKey{Name: "x", Scope: "read"}, change.Request[*access.IssuedKey]{})
	require.True(t, problem.Is(err, problem.Unauthorized), "%v", err)
	_, err = n.App.Access.RotateAPIKey(ctx, publicid.Read[publicid.APIKey](spare.(string)), nil, change.Request[*access.IssuedKey]{})
	require.True(t, problem.Is(err, problem.Unauthorized), "%v", err)
	err = n.App.Access.WithdrawAPIKey(ctx, publicid.Read[publicid.APIKey](spare.(string)), false, change.Request[*db.APIKey]{})
	require.True(t, problem.Is(err, problem.Unauthorized), "%v", err)
	_, err = n.App.Access.CreateMember(ctx, access.NewMember{Email: "new@example.com", Name: "x", Role: "admin"},
		change.Request[*db.User]{})
	require.True(t, problem.Is(err, problem.Unauthorized), "%v", err)
	unchanged(t)
}

// keyFor creates a key for another member, or for n if the member is nil.
func (n *tenant) keyFor(t *testing.T, of *tenant) object {
	t.Helper()
	body := object{"name": "x", "scope": "read:write"}
	if of != nil {
		body["memberId"] = of.Owner.ID.String()
	}
	return n.NewKeyOf(t, body)
}

// revoked reports for each key whether it is revoked.
func (n *tenant) revoked(t *testing.T, keys ...object) []bool {
	t.Helper()
	all := make([]bool, len(keys))
	for i, k := range keys {
		all[i] = n.listed(t, k["id"])["revokedAt"] != nil
	}
	return all
}

func makerRemoved(t *testing.T, n *tenant) {
	eve, ann := n.add(t, "admin", "eve@example.com"), n.add(t, "admin", "ann@example.com")
	keys := []object{eve.keyFor(t, ann), ann.keyFor(t, nil), n.keyFor(t, ann), ann.keyFor(t, n.add(t, "member", "bob@example.com"))}
	n.Make(t, http.MethodDelete, eve.path(), nil)
	require.Equal(t, []bool{true, false, false, false}, n.revoked(t, keys...))
	n.ends(t, keys[0]["key"])
	require.Equal(t, http.StatusOK, ann.Do(t, http.MethodGet, "/v1/me", nil).Status, "the operator's key for Ann")
}

func makerDemoted(t *testing.T, n *tenant) {
	sue, kim := n.add(t, "owner", "sue@example.com"), n.add(t, "member", "kim@example.com")
	keys := []object{sue.keyFor(t, n), sue.keyFor(t, kim), sue.keyFor(t, nil)}
	n.Patch(t, sue.path(), object{"role": "admin"})
	require.Equal(t, []bool{true, false, false}, n.revoked(t, keys...), "an admin makes keys for members")
	n.Patch(t, sue.path(), object{"name": "Sue"})
	n.Patch(t, sue.path(), object{"role": "member"})
	require.Equal(t, []bool{true, true, false}, n.revoked(t, keys...), "their own stays")
}

func memberPromoted(t *testing.T, n *tenant) {
	eve, ann := n.add(t, "admin", "eve@example.com"), n.add(t, "member", "ann@example.com")
	keys := []object{eve.keyFor(t, ann), n.keyFor(t, ann), ann.keyFor(t, nil)}
	n.Patch(t, ann.path(), object{"role": "admin"})
	require.Equal(t, []bool{false, false, false}, n.revoked(t, keys...), "an admin manages admins")
	n.Patch(t, ann.path(), object{"role": "owner"})
	require.Equal(t, []bool{true, false, false}, n.revoked(t, keys...))
}

// Eve has the key that she created for Ann, so she may be the one that uses it.
func madeByMeansOf(t *testing.T, n *tenant) {
	eve, ann, bob := n.add(t, "admin", "eve@example.com"), n.add(t, "admin", "ann@example.com"), n.add(t, "member", "bob@example.com")
	own := ann.keyFor(t, nil)
	asAnn := n.by(eve.keyFor(t, ann)["key"])
	again := asAnn.keyFor(t, nil)
	keys := []object{
		again, n.by(again["key"]).keyFor(t, nil), asAnn.keyFor(t, bob),
		asAnn.rotate(t, own["id"], nil), ann.rotate(t, again["id"], nil), ann.keyFor(t, nil), own,
	}
	n.Patch(t, eve.path(), demotion)
	require.Equal(t, []bool{true, true, true, true, true, false, false}, n.revoked(t, keys...))
}

func makersMaker(t *testing.T, n *tenant) {
	eve, ann := n.add(t, "admin", "eve@example.com"), n.add(t, "member", "ann@example.com")
	made := n.by(n.keyFor(t, eve)["key"]).keyFor(t, ann)
	n.Make(t, http.MethodDelete, eve.path(), nil)
	require.Equal(t, []bool{true}, n.revoked(t, made))
}

func TestAKeyThatAnotherKeyMade(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"never ends later than the key that made it":      endsWithItsCreator,
		"by rotation never ends later than that key":      rotationEndsWithItsCreator,
		"in the overlap of a rotation ends with the old":  endsWithTheOverlap,
		"is revoked with it, and so are the keys it made": revokedWithItsCreator,
		"is revoked with it also at a second revocation":  revokedLater,
		"stays valid if the request that revokes says so": keptAtRevocation,
	})
}

// keyID returns the id of the tenant's own key.
func (n *tenant) keyID(t *testing.T) string {
	t.Helper()
	return n.Get(t, "/v1/me")["apiKey"].(object)["id"].(string)
}

func (n *tenant) revoke(t *testing.T, key object, query string) {
	t.Helper()
	a := n.Do(t, http.MethodDelete, apptest.KeysPath+"/"+key["id"].(string)+query, nil)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
}

func endsWithItsCreator(t *testing.T, n *tenant) {
	ends := time.Now().Add(30 * time.Minute).UTC().Truncate(time.Second)
	maker := n.NewKeyOf(t, object{"name": "CI", "scope": "read:write", "expiresAt": ends})
	by := n.by(maker["key"])
	require.Equal(t, maker["expiresAt"], by.keyFor(t, nil)["expiresAt"], "without a time of its own")
	require.Equal(t, maker["expiresAt"], by.NewKeyOf(t, object{"name": "x", "scope": "read", "expiresAt": ends})["expiresAt"])
	sooner := by.NewKeyOf(t, object{"name": "x", "scope": "read", "expiresAt": ends.Add(-time.Minute)})
	require.Equal(t, ends.Add(-time.Minute), apptest.Moment(t, sooner, "expiresAt").UTC())
	a := by.Refused(t, "ERR_VALIDATION", http.MethodPost, apptest.KeysPath,
		object{"name": "for ever", "scope": "read:write", "expiresAt": ends.Add(time.Second)})
	require.Equal(t, []string{"expiresAt"}, a.Fields())
}

func rotationEndsWithItsCreator(t *testing.T, n *tenant) {
	maker := n.NewKeyOf(t, object{"name": "CI", "scope": "read:write", "expiresAt": time.Now().Add(30 * time.Minute)})
	by := n.by(maker["key"])
	require.Equal(t, maker["expiresAt"], by.rotate(t, maker["id"], nil)["expiresAt"], "it can't prolong itself")
	endless := n.keyFor(t, nil)
	require.Equal(t, maker["expiresAt"], by.rotate(t, endless["id"], nil)["expiresAt"], "nor pass on a longer life")
	require.Nil(t, n.rotate(t, endless["id"], nil)["expiresAt"])
}

func endsWithTheOverlap(t *testing.T, n *tenant) {
	old := n.keyFor(t, nil)
	n.rotate(t, old["id"], 3600)
	require.Equal(t, n.listed(t, old["id"])["expiresAt"], n.by(old["key"]).keyFor(t, nil)["expiresAt"])
}

func revokedWithItsCreator(t *testing.T, n *tenant) {
	leaked, other := n.keyFor(t, nil), n.keyFor(t, nil)
	child := n.by(leaked["key"]).keyFor(t, nil)
	grandchild, rotated := n.by(child["key"]).keyFor(t, nil), n.by(child["key"]).rotate(t, child["id"], nil)
	n.revoke(t, leaked, "")
	require.Equal(t, []bool{true, true, true, true, false}, n.revoked(t, leaked, child, grandchild, rotated, other))
	n.by(grandchild["key"]).Refused(t, "ERR_UNAUTHORIZED", http.MethodGet, "/v1/me", nil)
}

func revokedLater(t *testing.T, n *tenant) {
	leaked := n.keyFor(t, nil)
	child := n.by(leaked["key"]).keyFor(t, nil)
	n.revoke(t, leaked, "?keepCreated=true")
	n.revoke(t, leaked, "")
	require.Equal(t, []bool{true}, n.revoked(t, child))
}

func keptAtRevocation(t *testing.T, n *tenant) {
	maker := n.keyFor(t, nil)
	child := n.by(maker["key"]).keyFor(t, nil)
	n.revoke(t, maker, "?keepCreated=true")
	require.Equal(t, []bool{true, false}, n.revoked(t, maker, child))
	require.Equal(t, maker["id"], n.listed(t, child["id"])["createdByKeyId"])
}
