package store_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

// cascades are the references whose rows are deleted with their parent. All other references
// prevent the deletion of the parent, so that a use case has to handle its rows first.
var cascades = []string{
	"attempts_deliveries_delivery",
	"changelog_links_changelog_entries_entry",
	"contact_documents_contacts_contact",
	"deliveries_webhooks_webhook",
	"post_documents_posts_post",
	"post_revenues_posts_post",
	"post_tags_posts_post",
	"post_tags_tags_tag",
	"recoveries_webhooks_webhook",
	"subject_records_subject_requests_request",
	"submissions_boards_board",
	"submissions_posts_post",
}

func TestOnlyTheseReferencesDeleteRowsByThemselves(t *testing.T) {
	t.Parallel()
	c := connect(t, testkit.Database(t))
	require.Equal(t, cascades, texts(t, c, "SELECT conname FROM pg_constraint WHERE contype = 'f' AND confdeltype = 'c' ORDER BY 1"))
	require.Empty(t, texts(t, c, "SELECT conname FROM pg_constraint WHERE contype = 'f' AND confdeltype NOT IN ('c', 'a')"))
}

// remaining counts the rows of tables.
func remaining(t *testing.T, c *pgx.Conn, tables ...string) map[string]int {
	t.Helper()
	left := map[string]int{}
	for _, table := range tables {
		var n int
		require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
		left[table] = n
	}
	return left
}

func TestADeletedWebhookTakesItsLogAlongButNotTheEvents(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s := open(t, url)
	r := seed(t, s)
	require.NoError(t, s.Client().Webhook.DeleteOneID(r.webhook).Exec(r.ctx))
	require.Equal(t, map[string]int{"deliveries": 0, "attempts": 0, "recoveries": 0, "events": 1},
		remaining(t, connect(t, url), "deliveries", "attempts", "recoveries", "events"))
}

func TestADeletedDeliveryTakesItsAttemptsAlongButNotItsReplays(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s := open(t, url)
	r := seed(t, s)
	require.NoError(t, s.Client().Delivery.DeleteOneID(r.delivery).Exec(r.ctx))
	require.Equal(t, map[string]int{"attempts": 0, "deliveries": 1}, remaining(t, connect(t, url), "attempts", "deliveries"))
	left, err := s.Client().Delivery.Get(r.ctx, r.replay)
	require.NoError(t, err)
	require.Equal(t, r.delivery, *left.ReplayOf)
}

func TestADeletedTagComesOffItsPosts(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s := open(t, url)
	r := seed(t, s)
	require.NoError(t, s.Client().Tag.DeleteOneID(r.tag).Exec(r.ctx))
	require.Equal(t, map[string]int{"post_tags": 0, "posts": 2}, remaining(t, connect(t, url), "post_tags", "posts"))
}

func TestADeletedChangelogEntryLetsGoOfItsPosts(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	s := open(t, url)
	r := seed(t, s)
	require.NoError(t, s.Client().ChangelogEntry.DeleteOneID(r.entry).Exec(r.ctx))
	require.Equal(t, map[string]int{"changelog_links": 0, "posts": 2}, remaining(t, connect(t, url), "changelog_links", "posts"))
}

func TestARowWithDependentRowsCannotBeDeleted(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	r := seed(t, open(t, url))
	c := connect(t, url)
	for what, id := range map[string]struct {
		table string
		id    fmt.Stringer
	}{
		"an organization with members":        {"organizations", r.organization.UUID()},
		"a member with keys and posts":        {"users", r.user.UUID()},
		"a board with posts and tags":         {"boards", r.board.UUID()},
		"a contact with posts":                {"contacts", r.contact.UUID()},
		"a post with votes and comments":      {"posts", r.post.UUID()},
		"a post that another was merged into": {"posts", r.target.UUID()},
		"a comment with replies":              {"comments", r.comment.UUID()},
		"an event that is being delivered":    {"events", r.event.UUID()},
	} {
		t.Run(what, func(t *testing.T) {
			requireRefused(t, try(t, c, "DELETE FROM "+id.table+" WHERE id = $1", id.id.String()), "")
		})
	}
}

func TestAContactCanGoOnceItsPostsAreOnTheirOwn(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
	r := seed(t, s)
	require.NoError(t, s.Client().Post.Update().ClearContactID().Exec(r.ctx))
	require.NoError(t, s.Client().Contact.DeleteOneID(r.contact).Exec(r.ctx))
}
