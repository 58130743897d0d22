package access_test

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/apikey"
	"earshot/internal/access"
	"earshot/internal/testkit/apptest"
)

func TestTheNumberOfKeys(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"of a member is 20 at most, apart from other members' keys":   memberKeyCap,
		"of an organization is 1,000 at most, and rotations go on":    organizationKeyCap,
		"of a member who rotates is 100 at most, beside the old one":  rotationCap,
		"counts a key that was rotated once, while the old one lasts": rotatedKeysCount,
	})
}

// fill adds the given number of valid keys to the member.
func (n *tenant) fill(t *testing.T, many int) {
	t.Helper()
	ctx, client := n.Context(t.Context()), n.App.Store.Client().APIKey
	missing := many - client.Query().Where(apikey.UserID(n.Owner.ID), apikey.RevokedAtIsNil()).CountX(ctx)
	client.MapCreateBulk(make([]struct{}, missing), func(c *db.APIKeyCreate, _ int) {
		c.SetUserID(n.Owner.ID).SetName("x").SetScope(apikey.ScopeRead).SetHash([]byte(rand.Text())).SetPrefix("esk_00000000")
	}).ExecX(ctx)
}

// full requires that the request is refused because of the cap.
func (n *tenant) full(t *testing.T, limit int, path string, body object) {
	t.Helper()
	a := n.Refused(t, "ERR_PLAN_LIMIT", http.MethodPost, path, body)
	require.Equal(t, "apiKey", a.Details()["resource"])
	require.EqualValues(t, strconv.Itoa(limit), a.Details()["limit"])
}

var one = object{"name": "One more", "scope": "read"}

func memberKeyCap(t *testing.T, n *tenant) {
	kim := n.add(t, "member", "kim@example.com")
	kim.fill(t, 19)
	last := kim.NewKeyOf(t, one)
	kim.full(t, 20, apptest.KeysPath, one)
	n.full(t, 20, apptest.KeysPath, object{"name": "x", "scope": "read", "memberId": kim.Owner.ID.String()})
	n.NewKeyOf(t, one)
	n.Make(t, http.MethodDelete, apptest.KeysPath+"/"+last["id"].(string), nil)
	kim.NewKeyOf(t, one) // a key that ended makes room
	kim.NewKey(t, access.NewAPIKey{Name: "the operator's", Scope: "read"})
}

func rotatedKeysCount(t *testing.T, n *tenant) {
	n.fill(t, 19)
	key := n.NewKeyOf(t, one)
	next := n.rotate(t, key["id"], 3600)
	n.full(t, 20, apptest.KeysPath, one)
	n.Make(t, http.MethodDelete, apptest.KeysPath+"/"+key["id"].(string), nil)
	n.full(t, 20, apptest.KeysPath, one)
	n.Make(t, http.MethodDelete, apptest.KeysPath+"/"+next["id"].(string), nil)
	n.NewKeyOf(t, one)
}

func organizationKeyCap(t *testing.T, n *tenant) {
	kim, key := n.add(t, "member", "kim@example.com"), n.NewKeyOf(t, one)
	kim.fill(t, 1000-len(n.Walk(t, apptest.KeysPath, "100", func() {})))
	n.NewKeyOf(t, one)
	n.full(t, 1000, apptest.KeysPath, one)
	n.rotate(t, key["id"], nil)
}

func rotationCap(t *testing.T, n *tenant) {
	key := n.NewKeyOf(t, one)
	n.fill(t, 100)
	next := n.rotate(t, key["id"], nil)
	n.full(t, 100, apptest.KeysPath+"/"+key["id"].(string)+"/rotate", object{})
	n.Make(t, http.MethodDelete, apptest.KeysPath+"/"+next["id"].(string), nil)
	n.rotate(t, key["id"], nil)
}
