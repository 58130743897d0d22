package postgres_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/postgres"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
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
	c := fixture.Connect(t, testkit.SharedDatabase(t))
	require.Equal(t, cascades, fixture.Texts(t, c, "SELECT conname FROM pg_constraint WHERE contype = 'f' AND confdeltype = 'c' ORDER BY 1"))
	require.Empty(t, fixture.Texts(t, c, "SELECT conname FROM pg_constraint WHERE contype = 'f' AND confdeltype NOT IN ('c', 'a')"))
}

// remaining counts the organization's rows in tables.
func remaining(t *testing.T, s *postgres.DB, r *fixture.Rows, tables ...string) map[string]int {
	t.Helper()
	left := map[string]int{}
	for _, table := range tables {
		var n int
		sql := "SELECT count(*) FROM " + table + " WHERE organization_id = $1"
		require.NoError(t, s.Across("a test").QueryRow(t.Context(), sql, r.Organization).Scan(&n))
		left[table] = n
	}
	return left
}

func TestADeletedWebhookTakesItsLogAlongButNotTheEvents(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	r := fixture.Seed(t, s)
	require.NoError(t, s.Client().Webhook.DeleteOneID(r.Webhook).Exec(r.Ctx))
	require.Equal(t, map[string]int{"deliveries": 0, "attempts": 0, "recoveries": 0, "events": 1},
		remaining(t, s, r, "deliveries", "attempts", "recoveries", "events"))
}

func TestADeletedDeliveryTakesItsAttemptsAlongButNotItsReplays(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	r := fixture.Seed(t, s)
	require.NoError(t, s.Client().Delivery.DeleteOneID(r.Delivery).Exec(r.Ctx))
	require.Equal(t, map[string]int{"attempts": 0, "deliveries": 1}, remaining(t, s, r, "attempts", "deliveries"))
	left, err := s.Client().Delivery.Get(r.Ctx, r.Replay)
	require.NoError(t, err)
	require.Equal(t, r.Delivery, *left.ReplayOf)
}

func TestADeletedTagComesOffItsPosts(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	r := fixture.Seed(t, s)
	require.NoError(t, s.Client().Tag.DeleteOneID(r.Tag).Exec(r.Ctx))
	require.Equal(t, map[string]int{"post_tags": 0, "posts": 2}, remaining(t, s, r, "post_tags", "posts"))
}

func TestADeletedChangelogEntryLetsGoOfItsPosts(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	r := fixture.Seed(t, s)
	require.NoError(t, s.Client().ChangelogEntry.DeleteOneID(r.Entry).Exec(r.Ctx))
	require.Equal(t, map[string]int{"changelog_links": 0, "posts": 2}, remaining(t, s, r, "changelog_links", "posts"))
}

func TestARowWithDependentRowsCannotBeDeleted(t *testing.T) {
	t.Parallel()
	r := fixture.Seed(t, testkit.SharedStore(t))
	c := fixture.Connect(t, testkit.SharedDatabase(t))
	for what, id := range map[string]struct {
		table string
		id    fmt.Stringer
	}{
		"an organization with members":        {"organizations", r.Organization.UUID()},
		"a member with keys and posts":        {"users", r.User.UUID()},
		"a board with posts and tags":         {"boards", r.Board.UUID()},
		"a contact with posts":                {"contacts", r.Contact.UUID()},
		"a post with votes and comments":      {"posts", r.Post.UUID()},
		"a post that another was merged into": {"posts", r.Target.UUID()},
		"a comment with replies":              {"comments", r.Comment.UUID()},
		"an event that is being delivered":    {"events", r.Event.UUID()},
	} {
		t.Run(what, func(t *testing.T) {
			requireRefused(t, try(t, c, "DELETE FROM "+id.table+" WHERE id = $1", id.id.String()), "")
		})
	}
}

func TestAContactCanGoOnceItsPostsAreOnTheirOwn(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	r := fixture.Seed(t, s)
	require.NoError(t, s.Client().Post.Update().ClearContactID().Exec(r.Ctx))
	require.NoError(t, s.Client().Contact.DeleteOneID(r.Contact).Exec(r.Ctx))
}
