package mcp_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
	"earshot/mcp"
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
		{"identify_contact", object{"externalUserId": "u-1"}, "ERR_VALIDATION", []string{"externalUserId", "external_user_id"}},
		{"identify_contact", object{"action": "batch", "external_user_id": "u-1"}, "ERR_VALIDATION", []string{"external_user_id", "contacts"}},
		{"identify_contact", object{"action": "other", "external_user_id": "u-1"}, "ERR_VALIDATION", []string{"action"}},
		{"update_contact", object{}, "ERR_VALIDATION", []string{"contact_id"}},
		{"update_contact", object{"action": "batch"}, "ERR_VALIDATION", []string{"contacts"}},
		{"create_contact", object{"metadata": object{"a": strings.Repeat("x", 2<<20)}}, "ERR_PAYLOAD_TOO_LARGE", nil},
		{"create_contact", object{"metadata": object{"a": strings.Repeat("x", 300<<10)}}, "ERR_VALIDATION", []string{"metadata"}},
	} {
		got := a.call(t, bad.tool, bad.arguments)
		require.Equal(t, bad.code, got.code(), "%s %.80v: %s", bad.tool, bad.arguments, got.raw)
		require.ElementsMatch(t, bad.fields, got.fields(), "%s %.80v: %s", bad.tool, bad.arguments, got.raw)
	}
	unchanged(t)
}

func TestAnArgumentThatTheActionDoesNotTakeIsRefusedWithTheArgumentsThatItTakes(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	board := n.ID(t, "/v1/boards", object{"name": "Ideas"})
	post := n.ID(t, "/v1/boards/"+board+"/posts", object{"title": "Dark mode"})
	entry := n.ID(t, "/v1/boards/"+board+"/changelog", object{"title": "Dark at last"})
	unchanged := n.Watch(t)
	for name, bad := range map[string]struct {
		tool      string
		arguments object
		// fields are the arguments with their rules.
		fields []string
		words  string
	}{
		"an argument of another action": {
			"list_boards", object{"action": "posts", "board_id": board}, []string{"board_id unknown"},
			"board_id: is not an argument of the action posts, which takes contact_id, cursor, ",
		},
		"a filter that there is not": {
			"list_contacts", object{"created_after": "x"}, []string{"created_after unknown"}, "of the action contacts, which takes ",
		},
		"links of a new changelog entry": {
			"manage_changelog", object{"action": "create", "board_id": board, "title": "PDF", "post_ids": []string{post}},
			[]string{"post_ids unknown"}, "of the action create, which takes ",
		},
		"the tags of a post by their names": {
			"manage_post", object{"action": "update", "post_id": post, "tags": []string{"bug"}}, []string{"tags unknown"},
			"of the action update, which takes ",
		},
		"arguments where an action takes none": {
			"list_boards", object{"action": "me", "limit": 1}, []string{"limit unknown"}, "of the action me, which takes none",
		},
		"an action where a tool has one": {
			"list_contact_posts", object{"action": "posts", "contact_id": "ctc_x"}, []string{"action unknown"}, "of this tool, which takes contact_id, ",
		},
		"the contract's spelling": {
			"list_contacts", object{"externalUserId": "u-1"}, []string{"externalUserId unknown"}, "external_user_id",
		},
		"a part of an answer, by a tool that writes": {
			"manage_post", object{"action": "delete", "post_id": post, "part": "data.id", "offset": 0},
			[]string{"offset unknown", "part unknown"}, "of the action delete, which takes ",
		},
		"beside a missing member of the body": {
			"manage_post", object{"action": "create", "board_id": board, "status": "planned", "body": object{"text": 7}, "votes": 7},
			[]string{"status unknown", "votes unknown", "title required", "body.text type"}, "of the action create, which takes ",
		},
		"beside a wrong filter": {
			"search_posts", object{"board_id": board, "limit": "x", "board": board}, []string{"board unknown", "limit type"}, "of the action posts, ",
		},
		"beside a missing id": {
			"manage_changelog", object{"action": "update", "entry": entry}, []string{"entry_id required", "entry unknown"}, "of the action update, ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := a.call(t, bad.tool, bad.arguments)
			require.Equal(t, "ERR_VALIDATION", got.code(), got.raw)
			var rules []string
			for _, f := range got.body["error"].(object)["details"].(object)["fields"].([]any) {
				rules = append(rules, f.(object)["field"].(string)+" "+f.(object)["rule"].(string))
			}
			require.ElementsMatch(t, bad.fields, rules, got.raw)
			require.Contains(t, got.raw, bad.words)
		})
	}
	unchanged(t)
}

func TestEveryActionRefusesAnArgumentThatNoToolHas(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	unchanged := n.Watch(t)
	for name, tool := range a.everyTool(t) {
		input := tool.InputSchema.(object)
		require.Equal(t, false, input["additionalProperties"], name)
		for _, example := range input["examples"].([]any) {
			arguments := maps.Clone(example.(object))
			arguments["nonsense"] = true
			got := a.call(t, name, arguments)
			require.Equal(t, []string{"nonsense"}, got.fields(), "%s %v: %s", name, arguments, got.raw)
		}
	}
	unchanged(t)
}

// REST and tools accept and refuse the same objects. The contract's spelling is foreign to tools at any depth.
func TestMembersInsideAnArgumentAreJudgedAsByREST(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	board := n.ID(t, "/v1/boards", object{"name": "Ideas"})
	body := object{"text": "Weekly", "html": "<p>Weekly</p>"}
	byREST := n.Do(t, http.MethodPost, "/v1/boards/"+board+"/posts", object{"title": "PDF", "body": body})
	byTool := a.call(t, "manage_post", object{"action": "create", "board_id": board, "title": "PDF", "body": body})
	require.Equal(t, byREST.Code(), byTool.code(), byTool.raw)
	got := a.call(t, "identify_contact", object{"action": "batch", "contacts": []any{object{"externalUserId": "u-1"}}})
	require.Contains(t, got.raw, `"ERR_VALIDATION"`)
	require.NotContains(t, got.raw, "rest:")
	require.Empty(t, n.Do(t, http.MethodGet, "/v1/contacts", nil).Body["data"])
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

func TestManyUnknownArgumentsAreListedUpToALimit(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	a := newAgent(t, app, app.Tenant(t).Key)
	arguments := object{}
	for i := range 1000 {
		arguments["unknown"+strconv.Itoa(i)] = 1
	}
	got := a.call(t, "list_boards", arguments)
	require.Equal(t, "ERR_VALIDATION", got.code(), got.raw)
	require.Len(t, got.fields(), 20)
	require.Less(t, len(got.raw), mcp.MaxAnswer)
}
