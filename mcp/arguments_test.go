package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestArgumentsThatMakeNoSenseAreToolErrors(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	post := n.ID(t, "/v1/boards/"+n.ID(t, "/v1/boards", object{"name": "Ideas"})+"/posts", object{"title": "Dark mode"})
	unchanged := n.Watch(t)
	for _, bad := range []struct {
		tool      string
		arguments any
		code      string
		fields    []string
	}{
		{"list_boards", json.RawMessage(`[1]`), "ERR_VALIDATION", []string{""}},
		{"list_boards", json.RawMessage(`"boards"`), "ERR_VALIDATION", []string{""}},
		{"manage_board", object{}, "ERR_VALIDATION", []string{"action"}},
		{"manage_board", object{"action": "burn"}, "ERR_VALIDATION", []string{"action"}},
		{"manage_board", object{"action": 7}, "ERR_VALIDATION", []string{"action"}},
		{"list_boards", object{"action": nil}, "ERR_VALIDATION", []string{"action"}},
		{"get_post", object{}, "ERR_VALIDATION", []string{"post_id"}},
		{"get_post", object{"post_id": nil}, "ERR_VALIDATION", []string{"post_id"}},
		{"get_post", object{"post_id": object{}}, "ERR_VALIDATION", []string{"post_id"}},
		// An id never changes the path.
		{"get_post", object{"post_id": post + "/comments"}, "ERR_NOT_FOUND", nil},
		{"get_post", object{"post_id": "../contacts"}, "ERR_NOT_FOUND", nil},
		{"get_post", object{"post_id": post + "?limit=1"}, "ERR_NOT_FOUND", nil},
		{"get_post", object{"post_id": ""}, "ERR_VALIDATION", []string{"post_id"}},
		{"manage_post", object{"action": "update", "title": ""}, "ERR_VALIDATION", []string{"post_id"}},
		{"manage_post", object{"action": "update", "post_id": post, "title": "", "contact_id": ""}, "ERR_VALIDATION", []string{"title", "contact_id"}},
		{"search_posts", object{"q": []any{"a"}}, "ERR_VALIDATION", []string{"board_id", "q"}},
		// The tools don't accept the contract's spelling.
		{"identify_contact", object{"externalUserId": "u-1"}, "ERR_VALIDATION", []string{"external_user_id"}},
		{"identify_contact", object{"action": "batch", "external_user_id": "u-1"}, "ERR_VALIDATION", []string{"contacts"}},
		{"identify_contact", object{"action": "other", "external_user_id": "u-1"}, "ERR_VALIDATION", []string{"action"}},
		{"create_contact", object{"metadata": object{"a": strings.Repeat("x", 2<<20)}}, "ERR_PAYLOAD_TOO_LARGE", nil},
		{"create_contact", object{"metadata": object{"a": strings.Repeat("x", 300<<10)}}, "ERR_VALIDATION", []string{"metadata"}},
	} {
		got := a.call(t, bad.tool, bad.arguments)
		require.Equal(t, bad.code, got.code(), "%s %.80v: %s", bad.tool, bad.arguments, got.raw)
		require.ElementsMatch(t, bad.fields, got.fields(), "%s %.80v: %s", bad.tool, bad.arguments, got.raw)
	}
	unchanged(t)
}

func TestTheMetadataOfACallerIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	const own = `{"zFirst":1e400,"mrrCents":{"externalUserId":[{"bodyText":null}]},"a_b":12345678901234567890.50,"é":"\ud83d\ude00"}`
	made := post(t, n, calling("create_contact", json.RawMessage(`{"metadata":`+own+`}`)))
	require.Contains(t, string(made.Raw), `"zFirst":1e400,"mrrCents":{"externalUserId":[{"bodyText":null}]},"a_b":12345678901234567890.50`)
	lone := newAgent(t, app, n.Key).call(t, "create_contact", json.RawMessage(`{"metadata":{"a":"\ud83d"}}`))
	require.Equal(t, "ERR_VALIDATION", lone.code(), "half of a surrogate pair isn't mended in silence")
}
