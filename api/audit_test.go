package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db/user"
	"earshot/internal/access"
	"earshot/internal/publicid"
	"earshot/internal/retention"
	"earshot/internal/testkit/apptest"
)

// audited are the administrative operations. The operator runs createOrganization and
// backfillContacts.
var audited = []string{
	"createOrganization", "updateOrganization", "createApiKey", "rotateApiKey", "revokeApiKey", "createMember", "updateMember",
	"deleteMember", "eraseMember", "createBoard", "updateBoard", "deleteBoard", "createTag", "updateTag", "deleteTag", "updatePost", "deletePost",
	"mergePosts", "deleteComment", "createChangelogEntry", "updateChangelogEntry", "replaceLinkedPosts", "deleteChangelogEntry",
	"createContact", "upsertContacts", "updateContact", "deleteContact", "exportContact", "eraseContact", "createWebhook", "updateWebhook",
	"deleteWebhook", "rotateWebhookSecret", "testWebhook", "replayDelivery", "recoverWebhook",
	"createWidgetSecret", "deleteWidgetSecret", "replaceWidgetOrigins", "approveSubmission", "rejectSubmission", "backfillContacts",
}

// unaudited are the writes of end-users. The feed of events has them instead. An edit of somebody else's
// comment leaves a line all the same.
var unaudited = []string{
	"castVote", "createComment", "createPost", "identifyContact", "identifyContacts", "retractVote", "updateComment",
}

// trail reads the audit trail page by page, oldest entry first.
func trail(t *testing.T, n *apptest.Tenant, query string) (all []object) {
	t.Helper()
	for cursor := ""; ; {
		a := n.Do(t, http.MethodGet, "/v1/audit?limit=7&"+query+cursor, nil)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		for _, e := range a.Body["data"].([]any) {
			all = append(all, e.(object))
		}
		next, more := a.Body["nextCursor"].(string)
		if !more {
			slices.Reverse(all)
			return all
		}
		cursor = "&cursor=" + next
	}
}

func actions(entries []object) (names []string) {
	for _, e := range entries {
		names = append(names, e["action"].(string))
	}
	return names
}

func TestEveryWriteLeavesALineInTheAuditTrailOrIsAnEndUsers(t *testing.T) {
	t.Parallel()
	var writes []string
	for _, o := range load(t).operations() {
		if o.method != http.MethodGet && !slices.Contains(unaudited, o.OperationID) {
			writes = append(writes, o.OperationID)
		}
	}
	require.Subset(t, audited, writes, "each of them leaves a line, or is named as one that doesn't")
	require.Len(t, audited, len(writes)+2)
}

// The story first sends each request with a wrong If-Match, which is refused. It then sends the
// request as intended, and repeats it with the same Idempotency-Key.
func TestAChangeLeavesExactlyOneAuditEntryDespiteRefusalsAndRepeats(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.whole()
	wanted := []string{"createOrganization", "createApiKey", "createApiKey"} // made by the test kit
	for _, operation := range s.order {
		if slices.Contains(audited, operation) {
			wanted = append(wanted, operation)
		}
	}
	entries := trail(t, s.Tenant, "")
	require.Equal(t, wanted, actions(entries))
	for i, e := range entries {
		actor := e["actor"].(object)
		if i < 3 {
			require.Equal(t, object{"kind": "operator", "memberId": nil, "apiKeyId": nil}, actor)
			continue
		}
		require.Equal(t, s.Owner.ID.String(), actor["memberId"])
		require.Regexp(t, "^key_", actor["apiKeyId"])
	}
	text := string(s.Do(t, http.MethodGet, "/v1/audit?limit=100", nil).Raw)
	for _, value := range []string{"kim", "Kim", "Ada", "ada@", "Feature requests", "Mobile", "Dark", "example.com", "Import"} {
		require.NotContains(t, text, value)
	}
}

func TestTheAuditTrail(t *testing.T) {
	t.Parallel()
	together(t, apptest.Start(t, apptest.Options{}), map[string]func(*testing.T, *apptest.App){
		"has no entry for a request that changes nothing":       auditNothing,
		"is filtered by actor, actions, resource and time":      auditFilters,
		"has nothing of others, and refuses a filter amiss":     auditRefuses,
		"is removed after a year":                               auditExpires,
		"names the resource and its kind, also when it is gone": auditResources,
	})
}

func auditNothing(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	before := len(trail(t, n.Tenant, ""))
	for path, body := range map[string]object{
		"/v1/boards/" + n.ids["boardId"]:                             {"name": "Ideas"},
		"/v1/contacts/" + n.ids["contactId"]:                         {"externalUserId": "u-1"},
		"/v1/posts/" + n.ids["postId"]:                               {"status": "open"},
		"/v1/members/" + n.ids["memberId"]:                           {"role": "member"},
		"/v1/webhooks/" + n.ids["webhookId"]:                         {"enabled": true},
		"/v1/changelog/" + n.ids["entryId"]:                          {"title": "Dark at last"},
		"/v1/boards/" + n.ids["boardId"] + "/tags/" + n.ids["tagId"]: {"name": "Mobile"},
	} {
		n.Make(t, http.MethodPatch, path, body)
	}
	n.Make(t, http.MethodDelete, "/v1/api-keys/"+n.ids["keyId"], nil)
	n.Make(t, http.MethodDelete, "/v1/api-keys/"+n.ids["keyId"], nil)
	require.Len(t, trail(t, n.Tenant, ""), before+1, "the key was revoked once")
}

func auditFilters(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	m, err := app.Access.EnlistMember(n.Context(t.Context()), access.NewMember{Email: "a@example.com", Name: "A", Role: string(user.RoleAdmin)})
	require.NoError(t, err)
	as := n.As(t, m)
	board := as.ID(t, "/v1/boards", object{"name": "Theirs"})
	as.Make(t, http.MethodPatch, "/v1/boards/"+board, object{"name": "Ours"})
	own := trail(t, n.Tenant, "actor="+m.ID.String())
	require.Equal(t, []string{"createBoard", "updateBoard"}, actions(own))
	key := own[0]["actor"].(object)["apiKeyId"].(string)
	require.Equal(t, own, trail(t, n.Tenant, "actor="+key))
	require.Equal(t, own, trail(t, n.Tenant, "resource="+board))
	require.Equal(t, own[1:], trail(t, n.Tenant, "resource="+board+"&actions=updateBoard,deleteBoard"))
	require.Equal(t, []string{"createOrganization", "createApiKey", "createApiKey", "createMember", "createApiKey"},
		actions(trail(t, n.Tenant, "actor=operator")))
	at := url.QueryEscape(own[1]["createdAt"].(string))
	require.Equal(t, own[1:], trail(t, n.Tenant, "actor="+key+"&since="+at))
	require.Equal(t, own[:1], trail(t, n.Tenant, "actor="+key+"&until="+at))
	require.Empty(t, trail(t, n.Tenant, "resource="+publicid.NewBoard().String()))
}

func auditRefuses(t *testing.T, app *apptest.App) {
	n, theirs := newFixture(t, app), newFixture(t, app)
	for _, actor := range []string{theirs.Owner.ID.String(), theirs.ids["keyId"], publicid.NewUser().String(), "somebody"} {
		require.Empty(t, trail(t, n.Tenant, "actor="+actor))
	}
	require.Empty(t, trail(t, n.Tenant, "resource="+theirs.ids["boardId"]))
	require.Empty(t, trail(t, n.Tenant, "actions=castVote"))
	for _, query := range []string{"actions=", "since=yesterday", "until=0", "actor=", "cursor=x"} {
		require.Equal(t, http.StatusUnprocessableEntity, n.Do(t, http.MethodGet, "/v1/audit?"+query, nil).Status, query)
	}
}

func auditExpires(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	all, ctx := trail(t, n.Tenant, ""), n.Context(t.Context())
	old := publicid.AuditEntryAt(time.Now().AddDate(-1, 0, -1))
	app.Store.Client().AuditEntry.Create().SetID(old).SetAction("createBoard").SetResourceKind("board").
		SetResourceID(n.ids["boardId"]).SetCreatedAt(old.Time()).ExecX(ctx)
	require.Len(t, trail(t, n.Tenant, ""), len(all)+1)
	_, _, err := retention.RemoveAuditEntries(t.Context(), app.Store)
	require.NoError(t, err)
	require.Equal(t, all, trail(t, n.Tenant, ""))
}

func auditResources(t *testing.T, app *apptest.App) {
	n := newFixture(t, app)
	n.Make(t, http.MethodDelete, "/v1/posts/"+n.ids["postId"], nil)
	n.Make(t, http.MethodDelete, "/v1/contacts/"+n.ids["contactId"], nil)
	kinds := map[string]string{}
	for _, e := range trail(t, n.Tenant, "") {
		r := e["resource"].(object)
		kinds[r["id"].(string)] = r["kind"].(string)
	}
	for parameter, kind := range map[string]string{
		"postId": "post", "contactId": "contact", "boardId": "board", "tagId": "tag", "webhookId": "webhook",
		"memberId": "member", "keyId": "api_key", "entryId": "changelog_entry",
	} {
		require.Equal(t, kind, kinds[n.ids[parameter]], parameter)
	}
}
