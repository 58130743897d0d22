package e2e

import (
	"iter"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/devstack/demo"
	"earshot/internal/testkit"
	"earshot/internal/testkit/tier"
	sdk "earshot/sdk/go"
)

// all reads a list to its end.
func all[T any](t *testing.T, list iter.Seq2[*T, error]) (items []*T) {
	t.Helper()
	for item, err := range list {
		require.NoError(t, err)
		items = append(items, item)
	}
	return items
}

func TestTheDemoFillsAnOrganizationOnceAlsoAfterAKill(t *testing.T) {
	tier.Slow(t, "starts the whole stack three times")
	t.Parallel()
	s := newStack(t, "EARSHOT_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s")
	killed := s.command(t.Context(), earshot(), "up", "--demo")
	out := testkit.NewLogs()
	killed.Stdout, killed.Stderr = out, out
	require.NoError(t, killed.Start())
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "Ideas: 34 posts") }, commandTimeout, pollInterval, "the demo is not filled")
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())

	for _, start := range []string{"the start after the kill", "a start with the demo complete"} {
		t.Run(start, func(t *testing.T) {
			board := regexp.MustCompile(`Public board +(\S+)`).FindStringSubmatch(s.mustRun(earshot(), "up", "--demo", "--detach"))
			require.NotNil(t, board, "the address of the public board is printed")
			for _, page := range []string{"", "/swap-shifts-without-asking-a-manager", "/-/roadmap", "/-/changelog"} {
				s.isThere(board[1] + page)
			}
			s.hasDemo(t)
			s.mustRun(earshot(), "down")
		})
	}
}

// hasDemo counts the resources that demo.yaml describes, and the deliveries that its receiver refuses.
func (s *stack) hasDemo(t *testing.T) {
	t.Helper()
	c, err := sdk.New(sdk.Options{BaseURL: s.sourced("EARSHOT_BASE_URL"), APIKey: s.sourced("EARSHOT_API_KEY")})
	require.NoError(t, err)
	require.Len(t, all(t, c.Contacts.List(t.Context(), sdk.ListContactsParams{}).All()), 40)
	boards := all(t, c.Boards.List(t.Context(), sdk.ListBoardsParams{}).All())
	require.Len(t, boards, 3)
	posts := all(t, c.Posts.ListAll(t.Context(), sdk.ListAllPostsParams{}).All())
	require.Len(t, posts, 60)
	statuses, comments, votes := map[sdk.PostStatus]int{}, int64(0), int64(0)
	for _, p := range posts {
		statuses[p.Status]++
		comments += p.CommentCount
		votes += p.VoteCount
	}
	require.Len(t, statuses, 6, "every status but duplicate")
	require.EqualValues(t, 33, comments)
	require.EqualValues(t, 381, votes)
	published := 0
	for _, b := range boards {
		for _, e := range all(t, c.Changelog.List(t.Context(), b.ID, sdk.ListChangelogParams{}).All()) {
			require.NotNil(t, e.PublishedAt)
			published++
		}
	}
	require.Equal(t, 5, published, "one of them in three days")
	webhooks := all(t, c.Webhooks.List(t.Context(), sdk.ListWebhooksParams{}).All())
	require.Len(t, webhooks, 1)
	require.True(t, webhooks[0].Enabled)
	failed := c.Deliveries.List(t.Context(), webhooks[0].ID, sdk.ListDeliveriesParams{Status: sdk.DeliveryStatusFailed})
	require.Eventually(t, func() bool { return len(all(t, failed.All())) == 8 }, waitLimit, pollInterval,
		"the receiver refuses 4 declined posts and 4 published entries")
}

func TestTheDemoHasItsOwnBoardBesideOneWithItsName(t *testing.T) {
	tier.Slow(t, "fills the demo")
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	client, err := sdk.New(sdk.Options{BaseURL: p.url, APIKey: p.key})
	require.NoError(t, err)
	mine, err := client.Boards.Create(t.Context(), sdk.CreateBoardRequest{Name: "Ideas", Slug: sdk.Ptr("ideas")})
	require.NoError(t, err)

	var addresses []string
	for range 2 {
		address, stop, err := demo.Start(t.Context(), p.url, p.key, t.Logf)
		require.NoError(t, err)
		stop()
		require.True(t, strings.HasPrefix(address, p.url+"/b/"+mine.OrganizationID+"/"), address)
		require.False(t, strings.HasSuffix(address, "/ideas"), address)
		addresses = append(addresses, address)
	}
	require.Equal(t, addresses[0], addresses[1])
	posts := 0
	for _, err := range client.Posts.List(t.Context(), mine.ID, sdk.ListPostsParams{}).All() {
		require.NoError(t, err)
		posts++
	}
	require.Zero(t, posts, "the board of the same name stays as it was")
}
