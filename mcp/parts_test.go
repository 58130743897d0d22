package mcp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
	"earshot/mcp"
)

// whole reads a part piece by piece.
func (a agent) whole(t *testing.T, tool string, arguments object, part string) string {
	t.Helper()
	var all strings.Builder
	with := object{"part": part}
	for name, value := range arguments {
		with[name] = value
	}
	for {
		got := a.call(t, tool, with)
		require.False(t, got.failed, got.raw)
		require.LessOrEqual(t, len(got.raw), mcp.MaxAnswer)
		all.WriteString(got.body["text"].(string))
		if got.body["next_offset"] == nil {
			return all.String()
		}
		with["offset"] = got.body["next_offset"]
	}
}

func TestAResourceThatIsTooLargeForAnAnswerIsReadPieceByPiece(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	metadata := `{"camelCase":"` + strings.Repeat(`<é\"`, 20_000) + `","b":12345678901234567890}`
	made := a.call(t, "create_contact", json.RawMessage(`{"name":"Dana","metadata":`+metadata+`}`))
	require.LessOrEqual(t, len(made.raw), mcp.MaxAnswer)
	require.Equal(t, "Dana", made.data()["name"])
	require.Contains(t, made.body["note"], "data.metadata (")
	contact := object{"contact_id": made.data()["id"]}
	got := a.call(t, "get_contact", contact)
	require.LessOrEqual(t, len(got.raw), mcp.MaxAnswer)
	require.Empty(t, got.data()["metadata"])
	require.JSONEq(t, metadata, a.whole(t, "get_contact", contact, "data.metadata"))

	board := n.ID(t, "/v1/boards", object{"name": "Ideas"})
	text := strings.Repeat("ü", 50_000)
	post := n.ID(t, "/v1/boards/"+board+"/posts", object{"title": "Long", "body": object{"text": text}})
	read := a.call(t, "get_post", object{"post_id": post})
	begun := read.data()["body"].(object)["text"].(string)
	require.True(t, strings.HasPrefix(text, begun) && begun != "", "a text keeps its beginning")
	require.Equal(t, text, a.whole(t, "get_post", object{"post_id": post}, "data.body.text"))

	// A page has at least one of them, and the same way to read it.
	page := a.call(t, "search_posts", object{"board_id": board})
	require.LessOrEqual(t, len(page.raw), mcp.MaxAnswer)
	require.Contains(t, page.body["note"], "data[0].body.text (")
	require.Equal(t, text, a.whole(t, "search_posts", object{"board_id": board}, "data[0].body.text"))

	// The payload is one value of the caller at any depth.
	n.Make(t, http.MethodPost, "/v1/webhooks", object{"url": "https://hooks.example.com/in", "events": []string{"contact.updated"}})
	n.Make(t, http.MethodPatch, "/v1/contacts/"+contact["contact_id"].(string), object{"name": "Dana R."})
	hook := a.call(t, "list_webhooks", object{}).body["data"].([]any)[0].(object)["id"]
	delivery := a.call(t, "list_webhooks", object{"action": "deliveries", "webhook_id": hook}).body["data"].([]any)[0].(object)["id"]
	sent := object{"action": "delivery", "webhook_id": hook, "delivery_id": delivery}
	require.Contains(t, a.whole(t, "list_webhooks", sent, "data.payload"), "12345678901234567890")
}

func TestAPartThatIsNotThereIsAnErrorAndOffsetsBelongToPieces(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	id := n.ID(t, "/v1/contacts", object{"name": "Zoë"})
	for _, bad := range []struct {
		part, offset any
		field        string
	}{
		{"data.nothing", 0, "part"}, {"data[0]", 0, "part"}, {"data.name[7]", 0, "part"}, {7, 0, "part"},
		{"data.name", -1, "offset"}, {"data.name", 100, "offset"}, {"data.name", 3, "offset"}, {"data.name", "x", "offset"},
	} {
		got := a.call(t, "get_contact", object{"contact_id": id, "part": bad.part, "offset": bad.offset})
		require.Equal(t, []string{bad.field}, got.fields(), "%v: %s", bad, got.raw)
	}
	whole := a.call(t, "get_contact", object{"contact_id": id, "part": "data.name"})
	require.Equal(t, "Zoë", whole.body["text"])
	require.Nil(t, whole.body["next_offset"])
}
