package access_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/ent/db/apikey"
	"earshot/ent/db/user"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/apptest"
)

func TestAKeyMadeOverREST(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is shown once and works at once":              mintKey,
		"acts as the caller":                           keyOfTheCaller,
		"can't write with the scope read":              readKey,
		"ends at the moment that it was made for":      keyEnds,
		"is refused with every failure at once":        badNewKeys,
		"takes a name of up to 100 characters":         keyNames,
		"is listed with all others, oldest first":      walkKeys,
		"is listed without itself":                     keysUnseen,
		"of another organization isn't there":          foreignKeys,
		"is refused within a second of its revocation": revokedKey,
		"may revoke itself":                            revokeItself,
		"passes on the budget of the key that made it": inheritedBudget,
	})
}

func TestARotationOfAKey(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"makes a key with the rights and the rate limit of the old one": rotateKey,
		"lets the old one go on for a day, or for as asked":             rotationOverlap,
		"without an overlap ends the old one at once":                   rotateAtOnce,
		"never lets the old one live longer":                            rotateShortLived,
		"gives the new one as long a life anew":                         rotationLifetime,
		"repeated makes a key without an end again":                     rotateEndlessTwice,
		"repeated gives as long a life again":                           rotateAgedTwice,
		"of a rotated key starts from the new one":                      rotateTheNewOne,
		"takes an overlap of 0 s to 30 days":                            badOverlaps,
		"is refused of a key that ended":                                rotateEndedKeys,
	})
}

// by returns the tenant with another key.
func (n *tenant) by(key any) *tenant {
	same := *n.Tenant
	same.Key = key.(string)
	return &tenant{&same}
}

// listed returns the key's entry in the list.
func (n *tenant) listed(t *testing.T, id any) object {
	t.Helper()
	for _, k := range n.Do(t, http.MethodGet, apptest.KeysPath+"?limit=100", nil).Body["data"].([]any) {
		if k.(object)["id"] == id {
			return k.(object)
		}
	}
	require.Fail(t, "the key isn't in the list", id)
	return nil
}

// ends waits until a key is refused. A process may use a cached key for a second.
func (n *tenant) ends(t *testing.T, key any) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, http.StatusUnauthorized, n.by(key).Do(t, http.MethodGet, "/v1/me", nil).Status)
	}, testkit.Wait, testkit.Tick)
}

func mintKey(t *testing.T, n *tenant) {
	a := n.Do(t, http.MethodPost, apptest.KeysPath, object{"name": " CI ", "scope": "read:write", "expiresAt": nil})
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
	made := a.Data()
	require.Regexp(t, "^esk_[0-9A-Za-z]{40}$", made["key"])
	require.Equal(t, object{
		"userId": n.Owner.ID.String(), "name": "CI", "prefix": made["key"].(string)[:12], "scope": "read:write",
		"expiresAt": nil, "lastUsedAt": nil, "revokedAt": nil,
		"createdByKeyId": n.keyID(t),
	}, apptest.Without(made, "id", "key", "createdAt"))
	require.Equal(t, apptest.Without(made, "key"), n.listed(t, made["id"]))
	n.by(made["key"]).Board(t)
	require.NotNil(t, n.listed(t, made["id"])["lastUsedAt"])
	require.NotEqual(t, made["key"], n.NewKeyOf(t, object{"name": "CI", "scope": "read:write"})["key"], "a name may be used again")
}

func keyOfTheCaller(t *testing.T, n *tenant) {
	member := n.App.Store.Client().User.Create().SetEmail("second@example.com").SetName("Second").SetRole(user.RoleOwner).SaveX(n.Context(t.Context()))
	second := n.as(t, member)
	made := second.NewKeyOf(t, object{"name": "x", "scope": "read"})
	require.Equal(t, member.ID.String(), made["userId"])
	me := n.by(made["key"]).Get(t, "/v1/me")
	require.Equal(t, member.ID.String(), me["user"].(object)["id"])
	require.Equal(t, made["id"], me["apiKey"].(object)["id"])
	require.Equal(t, n.Organization.ID.String(), me["organization"].(object)["id"])
	require.Equal(t, member.ID.String(), n.listed(t, made["id"])["userId"])
}

func readKey(t *testing.T, n *tenant) {
	made := n.NewKeyOf(t, object{"name": "x", "scope": "read"})
	reader := n.by(made["key"])
	reader.Get(t, "/v1/boards")
	reader.Refused(t, "ERR_SCOPE_INSUFFICIENT", http.MethodPost, "/v1/boards", object{"name": "x"})
	reader.Refused(t, "ERR_SCOPE_INSUFFICIENT", http.MethodPost, apptest.KeysPath, object{"name": "x", "scope": "read"})
	reader.Refused(t, "ERR_SCOPE_INSUFFICIENT", http.MethodPost, apptest.KeysPath+"/"+made["id"].(string)+"/rotate", object{})
	reader.Refused(t, "ERR_SCOPE_INSUFFICIENT", http.MethodDelete, apptest.KeysPath+"/"+made["id"].(string), nil)
	require.Equal(t, made["id"], reader.listed(t, made["id"])["id"])
}

func keyEnds(t *testing.T, n *tenant) {
	made := n.NewKeyOf(t, object{"name": "x", "scope": "read", "expiresAt": "2100-01-01T02:00:00.1234567+02:00"})
	require.Equal(t, "2100-01-01T00:00:00.123456Z", made["expiresAt"])
	require.Equal(t, made["expiresAt"], n.listed(t, made["id"])["expiresAt"])
	soon := time.Now().Add(time.Second)
	short := n.NewKeyOf(t, object{"name": "x", "scope": "read", "expiresAt": soon})
	require.Equal(t, http.StatusOK, n.by(short["key"]).Do(t, http.MethodGet, "/v1/me", nil).Status)
	n.ends(t, short["key"])
	require.False(t, time.Now().Before(soon), "not before its time")
	require.Nil(t, n.listed(t, short["id"])["revokedAt"], "it ended by itself, and is still in the list")
}

func badNewKeys(t *testing.T, n *tenant) {
	for why, test := range map[string]struct {
		body  any
		rules string
	}{
		"empty and unknown": {object{"name": " ", "scope": "write", "expiresAt": "soon"}, "name:minLength scope:enum expiresAt:format"},
		"a NUL, and past":   {object{"name": "\x00", "scope": "read", "expiresAt": apptest.LongPast}, "name:pattern expiresAt:future"},
		"101 characters":    {object{"name": strings.Repeat("é", 101), "scope": "read"}, "name:maxLength"},
		"a NUL":             {object{"name": "a\x00", "scope": "read"}, "name:pattern"},
		"past":              {object{"name": "x", "scope": "read", "expiresAt": time.Now().Add(-time.Second)}, "expiresAt:future"},
		"of no calendar":    {object{"name": "x", "scope": "read", "expiresAt": "9999-12-31T23:59:59-01:00"}, "expiresAt:format"},
		"not a moment":      {object{"name": "x", "scope": "read", "expiresAt": "tomorrow"}, "expiresAt:format"},
		"no scope":          {object{"name": "x", "scope": nil}, "scope:type"},
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, apptest.KeysPath, test.body)
		var rules []string
		for _, f := range a.Details()["fields"].([]any) {
			rules = append(rules, fmt.Sprint(f.(object)["field"], ":", f.(object)["rule"]))
		}
		require.ElementsMatch(t, strings.Fields(test.rules), rules, why)
	}
	require.ElementsMatch(t, []string{"name", "scope"}, n.Refused(t, "ERR_VALIDATION", http.MethodPost, apptest.KeysPath, object{}).Fields())
}

func keyNames(t *testing.T, n *tenant) {
	for _, name := range []string{"x", strings.Repeat("é", 100)} {
		made := n.NewKeyOf(t, object{"name": "\t" + name + " ", "scope": "read"})
		require.Equal(t, name, made["name"])
	}
}

func walkKeys(t *testing.T, n *tenant) {
	by := []*tenant{n, n.add(t, "member", "kim@example.com")}
	want := n.Walk(t, apptest.KeysPath, "100", func() {})
	require.Len(t, want, 3, "the test kit's")
	for i := range 27 {
		want = append(want, by[i%2].NewKeyOf(t, object{"name": fmt.Sprint(i), "scope": "read"})["id"].(string))
	}
	n.Make(t, http.MethodDelete, apptest.KeysPath+"/"+want[5], nil)
	for _, limit := range []string{"1", "7", "30", "100"} {
		require.Equal(t, want, n.Walk(t, apptest.KeysPath, limit, func() {}), "by %s", limit)
	}
	require.Len(t, n.Do(t, http.MethodGet, apptest.KeysPath, nil).Body["data"], 25, "the usual page")
	for query, field := range map[string]string{"limit=0": "limit", "limit=101": "limit", "cursor=x": "cursor"} {
		require.Equal(t, []string{field}, n.Refused(t, "ERR_VALIDATION", http.MethodGet, apptest.KeysPath+"?"+query, nil).Fields())
	}
}

func keysUnseen(t *testing.T, n *tenant) {
	made := n.NewKeyOf(t, object{"name": "x", "scope": "read"})
	turned := n.Make(t, http.MethodPost, apptest.KeysPath+"/"+made["id"].(string)+"/rotate", object{})
	a := n.Do(t, http.MethodGet, apptest.KeysPath, nil)
	for _, key := range []any{made["key"], turned["key"], n.Key, n.ReadKey} {
		require.Contains(t, string(a.Raw), key.(string)[:12])
		require.NotContains(t, string(a.Raw), key.(string)[12:])
	}
}

func foreignKeys(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	made := stranger.NewKeyOf(t, object{"name": "x", "scope": "read"})
	unchanged := stranger.Watch(t)
	for _, id := range []string{made["id"].(string), publicid.NewAPIKey().String()} {
		n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, apptest.KeysPath+"/"+id, nil)
		n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, apptest.KeysPath+"/"+id+"/rotate", object{})
	}
	unchanged(t)
	require.NotContains(t, n.Walk(t, apptest.KeysPath, "100", func() {}), made["id"])
	n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, apptest.KeysPath+"/"+n.Owner.ID.String(), nil)
}

func revokedKey(t *testing.T, n *tenant) {
	made := n.NewKeyOf(t, object{"name": "x", "scope": "read"})
	n.by(made["key"]).Get(t, "/v1/me")
	a := n.Do(t, http.MethodDelete, apptest.KeysPath+"/"+made["id"].(string), nil)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	require.Equal(t, object{"id": made["id"]}, a.Data())
	n.ends(t, made["key"])
	kept := n.listed(t, made["id"])
	require.WithinDuration(t, time.Now(), apptest.Moment(t, kept, "revokedAt"), time.Minute)
	unchanged := n.Watch(t)
	again := n.Do(t, http.MethodDelete, apptest.KeysPath+"/"+made["id"].(string), nil)
	require.Equal(t, http.StatusOK, again.Status)
	require.Equal(t, a.Data(), again.Data())
	unchanged(t)
	require.Equal(t, kept, n.listed(t, made["id"]))
}

func revokeItself(t *testing.T, n *tenant) {
	made := n.NewKeyOf(t, object{"name": "x", "scope": "read:write"})
	n.by(made["key"]).Make(t, http.MethodDelete, apptest.KeysPath+"/"+made["id"].(string), nil)
	n.ends(t, made["key"])
}

// rotate rotates a key. A nil overlap is omitted from the request.
func (n *tenant) rotate(t *testing.T, id any, overlap any) object {
	t.Helper()
	body := object{}
	if overlap != nil {
		body["overlapSeconds"] = overlap
	}
	a := n.Do(t, http.MethodPost, apptest.KeysPath+"/"+id.(string)+"/rotate", body)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Raw)
	return a.Data()
}

// Only an operator sets a key's own limit, so the test writes the column.
func rotateKey(t *testing.T, n *tenant) {
	member := n.App.Store.Client().User.Create().SetEmail("second@example.com").SetName("Second").SetRole(user.RoleOwner).SaveX(n.Context(t.Context()))
	for _, scope := range []string{"read", "read:write"} {
		second := n.as(t, member)
		old := second.NewKeyOf(t, object{"name": "CI", "scope": scope})
		id, err := publicid.Parse[publicid.APIKey](old["id"].(string))
		require.NoError(t, err)
		n.App.Store.Client().APIKey.UpdateOneID(id).SetRateLimit(4321).ExecX(n.Context(t.Context()))
		a := n.Refused(t, "ERR_FORBIDDEN", http.MethodPost, "/v1/api-keys/"+old["id"].(string)+"/rotate", object{})
		require.Equal(t, "not_your_key", a.Details()["reason"], "one member could act as another")
		made := second.rotate(t, old["id"], nil)
		require.NotEqual(t, old["id"], made["id"])
		require.NotEqual(t, old["key"], made["key"])
		require.Regexp(t, "^esk_[0-9A-Za-z]{40}$", made["key"])
		require.Equal(t, object{
			"userId": member.ID.String(), "name": "CI", "prefix": made["key"].(string)[:12], "scope": scope,
			"createdByKeyId": second.keyID(t), "expiresAt": nil, "lastUsedAt": nil, "revokedAt": nil,
		}, apptest.Without(made, "id", "key", "createdAt"))
		for _, key := range []any{old["key"], made["key"]} {
			a := n.by(key).Do(t, http.MethodGet, "/v1/me", nil)
			require.Equal(t, http.StatusOK, a.Status, "both are good")
			require.Equal(t, "4321", a.Header.Get("X-RateLimit-Limit"))
		}
	}
}

func rotationOverlap(t *testing.T, n *tenant) {
	for overlap, want := range map[any]time.Duration{nil: 24 * time.Hour, 1: time.Second, 3600: time.Hour, 2_592_000: 30 * 24 * time.Hour} {
		old := n.NewKeyOf(t, object{"name": "x", "scope": "read"})
		made := n.rotate(t, old["id"], overlap)
		kept := n.listed(t, old["id"])
		require.WithinDuration(t, apptest.Moment(t, made, "createdAt").Add(want), apptest.Moment(t, kept, "expiresAt"), 500*time.Millisecond, "%v", overlap)
		require.Equal(t, apptest.Without(old, "key", "expiresAt", "lastUsedAt"), apptest.Without(kept, "expiresAt", "lastUsedAt"))
		require.Nil(t, kept["revokedAt"])
	}
}

func rotateAtOnce(t *testing.T, n *tenant) {
	old := n.NewKeyOf(t, object{"name": "x", "scope": "read:write"})
	caller := n.by(old["key"])
	caller.Get(t, "/v1/me")
	made := caller.rotate(t, old["id"], 0)
	n.ends(t, old["key"])
	require.Equal(t, made["id"], n.by(made["key"]).Get(t, "/v1/me")["apiKey"].(object)["id"])
}

func rotateShortLived(t *testing.T, n *tenant) {
	for _, overlap := range []any{nil, 7200, 2_592_000} {
		old := n.NewKeyOf(t, object{"name": "x", "scope": "read", "expiresAt": time.Now().Add(time.Hour)})
		n.rotate(t, old["id"], overlap)
		require.Equal(t, old["expiresAt"], n.listed(t, old["id"])["expiresAt"], "%v", overlap)
	}
	old := n.NewKeyOf(t, object{"name": "x", "scope": "read", "expiresAt": time.Now().Add(time.Hour)})
	n.rotate(t, old["id"], 60)
	require.WithinDuration(t, time.Now().Add(time.Minute), apptest.Moment(t, n.listed(t, old["id"]), "expiresAt"), 10*time.Second)
}

// agedKey returns a key with a lifetime of 30 days that was created 29 days ago.
func (n *tenant) agedKey(t *testing.T) object {
	t.Helper()
	made := n.NewKeyOf(t, object{"name": "x", "scope": "read", "expiresAt": time.Now().Add(24 * time.Hour)})
	id, err := publicid.Parse[publicid.APIKey](made["id"].(string))
	require.NoError(t, err)
	// The schema protects the creation time, so the test uses SQL.
	_, err = n.App.Pool.Exec(t.Context(), "UPDATE api_keys SET created_at = created_at - interval '29 days' WHERE id = $1", id.UUID().String())
	require.NoError(t, err)
	return made
}

func rotationLifetime(t *testing.T, n *tenant) {
	old := n.agedKey(t)
	made := n.rotate(t, old["id"], nil)
	require.WithinDuration(t, apptest.Moment(t, made, "createdAt").Add(30*24*time.Hour), apptest.Moment(t, made, "expiresAt"), 10*time.Second)
	next := n.rotate(t, made["id"], nil)
	require.WithinDuration(t, apptest.Moment(t, next, "createdAt").Add(30*24*time.Hour), apptest.Moment(t, next, "expiresAt"), 10*time.Second)
}

// A client that lost the answer rotates the old key again during the overlap. The overlap has given
// the old key an end, but the new key keeps the original lifetime.
func rotateEndlessTwice(t *testing.T, n *tenant) {
	old := n.NewKeyOf(t, object{"name": "x", "scope": "read"})
	require.Nil(t, n.rotate(t, old["id"], 3600)["expiresAt"])
	require.Nil(t, n.rotate(t, old["id"], 3600)["expiresAt"], "the key was made without an end")
}

func rotateAgedTwice(t *testing.T, n *tenant) {
	old := n.agedKey(t)
	n.rotate(t, old["id"], 60)
	again := n.rotate(t, old["id"], 60)
	require.WithinDuration(t, apptest.Moment(t, again, "createdAt").Add(30*24*time.Hour), apptest.Moment(t, again, "expiresAt"), 10*time.Second,
		"the key was made for 30 days")
}

func rotateTheNewOne(t *testing.T, n *tenant) {
	key := n.NewKeyOf(t, object{"name": "CI", "scope": "read:write"})
	for range 3 {
		key = n.by(key["key"]).rotate(t, key["id"], nil)
		require.Nil(t, key["expiresAt"])
		require.Equal(t, "CI", key["name"])
	}
}

func badOverlaps(t *testing.T, n *tenant) {
	made := n.NewKeyOf(t, object{"name": "x", "scope": "read"})
	path := apptest.KeysPath + "/" + made["id"].(string) + "/rotate"
	for _, overlap := range []any{-1, 2_592_001, "3600", 0.5, nil, 1e30} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, path, object{"overlapSeconds": overlap})
		require.Equal(t, []string{"overlapSeconds"}, a.Fields(), "%v", overlap)
	}
	n.Refused(t, "ERR_VALIDATION", http.MethodPost, path, nil)
	require.Nil(t, n.listed(t, made["id"])["expiresAt"])
}

func rotateEndedKeys(t *testing.T, n *tenant) {
	revoked := n.NewKeyOf(t, object{"name": "x", "scope": "read"})["id"].(string)
	n.Make(t, http.MethodDelete, apptest.KeysPath+"/"+revoked, nil)
	expired := n.NewKeyOf(t, object{"name": "x", "scope": "read"})["id"].(string)
	n.rotate(t, expired, 0)
	both := n.NewKeyOf(t, object{"name": "both", "scope": "read", "expiresAt": apptest.FarAway})["id"].(string)
	n.Make(t, http.MethodDelete, apptest.KeysPath+"/"+both, nil)
	n.App.Store.Client().APIKey.Update().Where(apikey.Name("both")).SetExpiresAt(n.Owner.CreatedAt).ExecX(n.Context(t.Context()))
	for id, reason := range map[string]string{revoked: "key_revoked", expired: "key_expired", both: "key_revoked"} {
		a := n.Refused(t, "ERR_CONFLICT", http.MethodPost, apptest.KeysPath+"/"+id+"/rotate", object{})
		require.Equal(t, http.StatusConflict, a.Status)
		require.Equal(t, object{"reason": reason}, a.Details())
	}
	require.Equal(t, object{"id": expired}, n.Make(t, http.MethodDelete, apptest.KeysPath+"/"+expired, nil), "what expired can be revoked")
}

func inheritedBudget(t *testing.T, n *tenant) {
	ctx := n.Context(t.Context())
	own := n.NewKeyOf(t, object{"name": "Bounded", "scope": "read:write"})
	id, err := publicid.Parse[publicid.APIKey](own["id"].(string))
	require.NoError(t, err)
	n.App.Store.Client().APIKey.UpdateOneID(id).SetRateLimit(77).ExecX(ctx)
	made := n.by(own["key"]).NewKeyOf(t, object{"name": "Child", "scope": "read"})
	require.Equal(t, "77", n.by(made["key"]).Do(t, http.MethodGet, "/v1/me", nil).Header.Get("X-RateLimit-Limit"))
}
