package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

// Tools run through the handlers of REST, so both accept and refuse the same calls.
func TestToolsJudgeAsRESTDoes(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	board := n.ID(t, "/v1/boards", object{"name": "Ideas"})
	tag := n.ID(t, "/v1/boards/"+board+"/tags", object{"name": "x"})
	post := n.ID(t, "/v1/boards/"+board+"/posts", object{"title": "x"})
	entry := n.ID(t, "/v1/boards/"+board+"/changelog", object{"title": "x"})

	for written, kept := range map[string]string{"100": "100", "100.0": "100", "1e2": "100", "1E+2": "100"} {
		made := a.make(t, "create_contact", object{"mrr_cents": json.Number(written), "currency": "EUR"})
		require.EqualValues(t, kept, text(t, made["mrr_cents"]), written)
		a.make(t, "update_contact", object{"contact_id": made["id"], "mrr_cents": json.Number(written), "currency": "EUR"})
	}
	require.Empty(t, a.call(t, "list_boards", object{"limit": json.Number("1e1")}).code())
	for written, kept := range map[string]string{
		"2199-03-12t10:41:07z": "2199-03-12T10:41:07Z", "2199-12-31T23:59:60Z": "2200-01-01T00:00:00Z",
	} {
		made := a.make(t, "manage_changelog", object{"action": "update", "entry_id": entry, "published_at": written})
		require.Equal(t, kept, made["published_at"])
	}
	made := a.make(t, "manage_board", object{"action": "update_tag", "board_id": board, "tag_id": tag, "color": "#AbC"})
	require.Equal(t, "#aabbcc", made["color"])

	unchanged := n.Watch(t)
	for _, bad := range []struct {
		tool      string
		arguments object
		code      string
		// want are the fields with their rules, or the value of details.field.
		want any
	}{
		{"get_post", object{"post_id": "nonsense"}, "ERR_NOT_FOUND", nil},
		{"get_post", object{"post_id": board}, "ERR_NOT_FOUND", nil},
		{"get_post", object{}, "ERR_VALIDATION", []string{"post_id required"}},
		{"manage_post", object{"action": "update", "post_id": post, "contact_id": "nonsense"}, "ERR_NOT_FOUND", "contact_id"},
		{"manage_post", object{"action": "update", "post_id": post, "tag_ids": []string{board}}, "ERR_NOT_FOUND", "tag_ids"},
		{"manage_post", object{"action": "update", "post_id": post, "contact_id": ""}, "ERR_VALIDATION", []string{"contact_id minLength"}},
		{"search_posts", object{"board_id": board, "contact_id": "nonsense"}, "ERR_NOT_FOUND", "contact_id"},
		{"create_contact", object{"mrr_cents": json.Number("0.5"), "currency": "EUR"}, "ERR_VALIDATION", []string{"mrr_cents type"}},
		{"create_contact", object{"mrr_cents": 1}, "ERR_VALIDATION", []string{"currency required"}},
		{"identify_contact", object{"name": ""}, "ERR_VALIDATION", []string{"external_user_id required", "name minLength"}},
		{"manage_board", object{"action": "create_tag", "board_id": board}, "ERR_VALIDATION", []string{"name required"}},
		{
			"manage_changelog", object{"action": "update", "entry_id": entry, "title": "", "published_at": "2199-12-31T22:59:60Z"},
			"ERR_VALIDATION", []string{"published_at format", "title minLength"},
		},
		{"list_contacts", object{"updated_since": "yesterday", "limit": "x"}, "ERR_VALIDATION", []string{"limit type", "updated_since format"}},
	} {
		got := a.call(t, bad.tool, bad.arguments)
		require.Equal(t, bad.code, got.code(), "%s %v: %s", bad.tool, bad.arguments, got.raw)
		details, _ := got.body["error"].(object)["details"].(object)
		if want, ok := bad.want.([]string); ok {
			var rules []string
			for _, f := range details["fields"].([]any) {
				rules = append(rules, f.(object)["field"].(string)+" "+f.(object)["rule"].(string))
			}
			require.ElementsMatch(t, want, rules, "%s", got.raw)
			continue
		}
		require.Equal(t, bad.want, details["field"], "%s %v: %s", bad.tool, bad.arguments, got.raw)
	}
	unchanged(t)
}

// text returns a number as it was written.
func text(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}
