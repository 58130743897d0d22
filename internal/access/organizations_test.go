package access_test

import (
	"context"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

var acme = access.NewOrganization{Name: "Acme", Plan: "business", OwnerEmail: "ada@example.com", OwnerName: "Ada"}

func TestTheOnlyOrganizationNeedsNoName(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	_, _, err := app.Access.FindOrganization(t.Context(), nil)
	require.True(t, problem.Is(err, problem.NotFound), "there is none")
	made, owner, err := app.Access.CreateOrganization(t.Context(), acme)
	require.NoError(t, err)
	found, first, err := app.Access.FindOrganization(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, made.ID, found.ID)
	require.Equal(t, owner.ID, first.ID)
	other, _, err := app.Access.CreateOrganization(t.Context(), acme)
	require.NoError(t, err)
	_, _, err = app.Access.FindOrganization(t.Context(), nil)
	require.True(t, problem.Is(err, problem.NotFound), "there are two")
	found, _, err = app.Access.FindOrganization(t.Context(), &other.ID)
	require.NoError(t, err)
	require.Equal(t, other.ID, found.ID)
	unknown := publicid.NewOrganization()
	_, _, err = app.Access.FindOrganization(t.Context(), &unknown)
	require.True(t, problem.Is(err, problem.NotFound))
}

func TestAnAPIKey(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is stored as its hash":                        keyHash,
		"is refused with every failure at once":        badKeys,
		"is listed with its member and without itself": listKeys,
		"can be revoked, again without effect":         revokeKey,
		"of another organization can't be revoked":     revokeForeignKey,
		"notes its use at most once a minute":          lastUsed,
		"belongs to a member of its own organization":  foreignMember,
		"and a new organization need sane names":       badOrganizations,
	})
}

func keyHash(t *testing.T, n *tenant) {
	ctx := n.Context(t.Context())
	secret, key, err := n.App.Access.CreateAPIKey(ctx, access.NewAPIKey{User: n.Owner.ID, Name: "CI", Scope: "read"})
	require.NoError(t, err)
	require.Regexp(t, "^esk_[0-9A-Za-z]{40}$", secret)
	hash := sha256.Sum256([]byte(secret))
	stored := n.App.Store.Client().APIKey.GetX(ctx, key.ID)
	require.Equal(t, hash[:], stored.Hash)
	require.Equal(t, secret[:12], stored.Prefix)
}

func badKeys(t *testing.T, n *tenant) {
	past := time.Now().Add(-time.Second)
	unchanged := n.Watch(t)
	_, _, err := n.App.Access.CreateAPIKey(n.Context(t.Context()), access.NewAPIKey{
		User: n.Owner.ID, Name: "", Scope: "write", ExpiresAt: &past,
	})
	require.Equal(t, []string{"name", "scope", "expiresAt"}, fieldsOf(t, err))
	unchanged(t)
}

func fieldsOf(t *testing.T, err error) []string {
	t.Helper()
	p, ok := problem.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, problem.Validation, p.Code)
	var names []string
	for _, f := range p.Details["fields"].([]problem.Field) {
		names = append(names, f.Field)
	}
	return names
}

func listKeys(t *testing.T, n *tenant) {
	all, err := n.App.Access.APIKeys(n.Context(t.Context()), page.Query{})
	require.NoError(t, err)
	keys := all.Items
	require.Len(t, keys, 2, "the test kit's")
	for _, k := range keys {
		require.Equal(t, n.Owner.ID, k.Edges.User.ID)
	}
	require.Equal(t, []string{n.Key[:12], n.ReadKey[:12]}, []string{keys[0].Prefix, keys[1].Prefix}, "oldest first")
}

func revokeKey(t *testing.T, n *tenant) {
	ctx := n.Context(t.Context())
	secret, key, err := n.App.Access.CreateAPIKey(ctx, access.NewAPIKey{User: n.Owner.ID, Name: "CI", Scope: "read"})
	require.NoError(t, err)
	first, err := n.App.Access.RevokeAPIKey(ctx, key.ID, false)
	require.NoError(t, err)
	require.NotNil(t, first.RevokedAt)
	again, err := n.App.Access.RevokeAPIKey(ctx, key.ID, false)
	require.NoError(t, err)
	require.Equal(t, first.RevokedAt, again.RevokedAt)
	_, err = n.App.Access.Authenticate(t.Context(), secret)
	require.True(t, problem.Is(err, problem.Unauthorized))
}

func revokeForeignKey(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	caller, err := n.App.Access.Authenticate(t.Context(), stranger.Key)
	require.NoError(t, err)
	unchanged := stranger.Watch(t)
	_, err = n.App.Access.RevokeAPIKey(n.Context(t.Context()), caller.Key.ID, false)
	require.True(t, problem.Is(err, problem.NotFound))
	unchanged(t)
}

func lastUsed(t *testing.T, n *tenant) {
	ctx := n.Context(t.Context())
	use := func() *time.Time {
		caller, err := n.App.Access.Authenticate(t.Context(), n.Key)
		require.NoError(t, err)
		return n.App.Store.Client().APIKey.GetX(ctx, caller.Key.ID).LastUsedAt
	}
	first := use()
	require.WithinDuration(t, time.Now(), *first, time.Minute)
	require.Equal(t, first, use())
	n.App.Store.Client().APIKey.Update().SetLastUsedAt(first.Add(-time.Minute)).ExecX(ctx)
	require.False(t, use().Before(*first))
}

func foreignMember(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	unchanged := n.Watch(t)
	_, _, err := n.App.Access.CreateAPIKey(n.Context(t.Context()), access.NewAPIKey{
		User: stranger.Owner.ID, Name: "x", Scope: "read",
	})
	require.True(t, problem.Is(err, problem.NotFound), "%v", err)
	unchanged(t)
}

func badOrganizations(t *testing.T, n *tenant) {
	_, _, err := n.App.Access.CreateOrganization(context.Background(), access.NewOrganization{
		Name: strings.Repeat("x", 101), Plan: "gold", OwnerEmail: "ada", OwnerName: "\x00",
	})
	require.ElementsMatch(t, []string{"name", "owner name", "owner email", "plan"}, fieldsOf(t, err))
}
