package mcp_test

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
	"earshot/mcp"
)

func TestEveryOperationIsReachedByExactlyOneOf18Tools(t *testing.T) {
	t.Parallel()
	tools, reached := map[string]bool{}, map[string][]string{}
	for _, row := range mcp.Table() {
		tools[row.Tool] = true
		reached[row.Operation] = append(reached[row.Operation], row.Tool+" "+row.Action)
	}
	for id := range operations(t) {
		require.Len(t, reached[id], 1, "%s is reached by %v", id, reached[id])
		delete(reached, id)
	}
	require.Empty(t, reached, "operations that the contract doesn't have")
	require.Len(t, tools, 18)
	forContacts := slices.DeleteFunc(slices.Collect(maps.Keys(tools)), func(name string) bool {
		return !strings.Contains(name, "contact")
	})
	require.Len(t, forContacts, 7, "%v", forContacts)
	require.Contains(t, forContacts, "identify_contact")
	require.Contains(t, forContacts, "create_contact")
}

func TestTheHintsOfEachToolMatchTheContract(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	tools := newAgent(t, app, app.Tenant(t).Key).everyTool(t)
	require.Len(t, tools, 18)
	all := operations(t)
	writes, deletes := map[string]bool{}, map[string]bool{}
	for _, row := range mcp.Table() {
		method := all[row.Operation].method
		writes[row.Tool] = writes[row.Tool] || method != http.MethodGet
		deletes[row.Tool] = deletes[row.Tool] || slices.Contains([]string{http.MethodDelete, http.MethodPatch, http.MethodPut}, method)
	}
	for name, tool := range tools {
		hints := tool.Annotations
		require.NotEmpty(t, tool.Title, name)
		require.Equal(t, tool.Title, hints.Title)
		require.Greater(t, len(tool.Description), 60, "%s: when to use it, and what comes back", name)
		require.Contains(t, tool.Description, "eturns ", name)
		require.Equal(t, !writes[name], hints.ReadOnlyHint, name)
		require.Equal(t, deletes[name], *hints.DestructiveHint, name)
		if !writes[name] {
			require.True(t, hints.IdempotentHint, name)
		}
		require.Equal(t, name == "manage_webhook", *hints.OpenWorldHint, name)
	}
}

func TestAReadingKeyIsNotShownTheToolsThatWriteAndIsRefusedByThemAsByREST(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	reader, all := newAgent(t, app, n.ReadKey), newAgent(t, app, n.Key).everyTool(t)
	shown := reader.everyTool(t)
	asReader := []string{"Authorization", "Bearer " + n.ReadKey}
	byREST := n.Do(t, http.MethodPost, "/v1/boards", object{"name": "Ideas"}, asReader...)
	require.Equal(t, "ERR_SCOPE_INSUFFICIENT", byREST.Code())
	unchanged := n.Watch(t)
	for name, tool := range all {
		if tool.Annotations.ReadOnlyHint {
			require.Contains(t, shown, name)
			continue
		}
		require.NotContains(t, shown, name)
		for _, arguments := range []any{tool.InputSchema.(object)["examples"].([]any)[0], object{}, []any{}} {
			call := calling(name, arguments)
			short := post(t, n, call, asReader...)
			require.JSONEq(t, indented(t, object{"jsonrpc": "2.0", "id": 7, "result": object{
				"isError": true, "structuredContent": byREST.Body, "content": short.Body["result"].(object)["content"],
			}}), string(short.Raw), name)
			call["params"].(object)["_meta"] = object{"progressToken": 1} // goes through the library
			require.JSONEq(t, string(short.Raw), string(post(t, n, call, asReader...).Raw), name)
		}
		got, err := reader.CallTool(t.Context(), &sdk.CallToolParams{Name: name})
		require.NoError(t, err)
		require.Equal(t, "ERR_SCOPE_INSUFFICIENT", read(t, got).code())
	}
	unchanged(t)
	require.Len(t, shown, 8)
	require.Contains(t, string(post(t, n, calling("drop_everything", nil), asReader...).Raw), "unknown tool")
}

func TestNamesAreTurnedIntoSnakeCaseOneToOne(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, o := range operations(t) {
		for _, name := range o.names() {
			other, taken := seen[mcp.Snake(name)]
			require.True(t, !taken || other == name, "%s and %s become the same", name, other)
			seen[mcp.Snake(name)] = name
			require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, mcp.Snake(name))
		}
	}
	require.Equal(t, "mrrCents", seen["mrr_cents"])
}

func TestTheDocumentationNamesEveryToolAndAction(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/mcp.md")
	require.NoError(t, err)
	for _, row := range mcp.Table() {
		line := regexp.MustCompile("(?m)^\\| `" + row.Tool + "` \\|.*$").FindString(string(page))
		require.NotEmpty(t, line, row.Tool)
		if row.Action != "" {
			require.Contains(t, line, "`"+row.Action+"`", row.Tool)
		}
	}
}
