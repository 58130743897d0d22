package demo_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/devstack/demo"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	earshot "earshot/sdk/go"
)

func TestMain(m *testing.M) { apptest.Main(m) }

func TestTheDemoHasItsOwnBoardBesideOneWithItsName(t *testing.T) {
	tier.Slow(t, "fills the demo")
	t.Parallel()
	tenant := apptest.Start(t, apptest.Options{}).Tenant(t)
	client, err := earshot.New(earshot.Options{BaseURL: tenant.App.URL, APIKey: tenant.Key})
	require.NoError(t, err)
	mine, err := client.Boards.Create(t.Context(), earshot.CreateBoardRequest{Name: "Ideas", Slug: earshot.Ptr("ideas")})
	require.NoError(t, err)

	var addresses []string
	for range 2 {
		address, stop, err := demo.Start(t.Context(), tenant.App.URL, tenant.Key, t.Logf)
		require.NoError(t, err)
		stop()
		require.True(t, strings.HasPrefix(address, tenant.App.URL+"/b/"+mine.OrganizationID+"/"), address)
		require.False(t, strings.HasSuffix(address, "/ideas"), address)
		addresses = append(addresses, address)
	}
	require.Equal(t, addresses[0], addresses[1])
	posts := 0
	for _, err := range client.Posts.List(t.Context(), mine.ID, earshot.ListPostsParams{}).All() {
		require.NoError(t, err)
		posts++
	}
	require.Zero(t, posts, "the board of the same name stays as it was")
}
