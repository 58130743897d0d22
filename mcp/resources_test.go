package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/testkit/apptest"
)

func TestTheContractAndTheWebhookCatalogueAreResources(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.ReadKey)
	found := map[string]string{}
	for r, err := range a.Resources(t.Context(), nil) {
		require.NoError(t, err)
		read, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: r.URI})
		require.NoError(t, err)
		found[r.Name] = read.Contents[0].Text
		require.Equal(t, r.Size, int64(len(read.Contents[0].Text)))
	}
	served, err := http.Get(app.URL + "/v1/openapi.json")
	require.NoError(t, err)
	defer served.Body.Close()
	raw, err := io.ReadAll(served.Body)
	require.NoError(t, err)
	require.JSONEq(t, string(raw), found["openapi.json"])
	var catalogue struct{ Events []object }
	decode(t, found["webhooks.json"], &catalogue)
	doc, err := api.Contract()
	require.NoError(t, err)
	require.Len(t, catalogue.Events, len(doc.Webhooks))
	for _, e := range catalogue.Events {
		require.NotEmpty(t, e["description"])
		require.Contains(t, e["payload"].(object)["required"], "event")
		require.Equal(t, e["event"], e["example"].(object)["event"])
	}
	require.NotContains(t, found["webhooks.json"], "$ref")
}

func TestPromptsNameToolsAndArgumentsThatThereAre(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	tools := a.everyTool(t)
	names := map[string]bool{}
	for p, err := range a.Prompts(t.Context(), nil) {
		require.NoError(t, err)
		names[p.Name] = true
		for _, arguments := range []map[string]string{nil, {p.Arguments[0].Name: "the_one"}} {
			got, err := a.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: p.Name, Arguments: arguments})
			require.NoError(t, err)
			text := got.Messages[0].Content.(*sdk.TextContent).Text
			require.Equal(t, arguments != nil, strings.Contains(text, "the_one"))
			for _, used := range strings.Fields(strings.NewReplacer("(", " ", ")", " ", ":", " ", ",", " ").Replace(text)) {
				if strings.HasPrefix(used, "list_") || strings.HasPrefix(used, "manage_") || strings.HasPrefix(used, "search_") {
					require.Contains(t, tools, used)
				}
			}
		}
	}
	require.Equal(t, map[string]bool{"triage_new_posts": true, "why_is_this_webhook_failing": true}, names)
	for p, err := range newAgent(t, app, n.ReadKey).Prompts(t.Context(), nil) {
		require.NoError(t, err)
		require.Equal(t, "why_is_this_webhook_failing", p.Name, "a key that can't triage isn't offered it")
	}
}
