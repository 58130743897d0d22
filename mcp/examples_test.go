package mcp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
)

// belongings makes one of every resource that an example names, and returns the ids by their
// prefixes. It makes two posts, because a post is never merged into itself.
func belongings(t *testing.T, n *apptest.Tenant) (ids map[string]string, other string) {
	t.Helper()
	ids = map[string]string{}
	ids["whk"] = n.ID(t, "/v1/webhooks", object{"url": "https://hooks.example.com/in", "events": event.Types})
	ids["brd"] = n.ID(t, "/v1/boards", object{"name": "Ideas"})
	board := "/v1/boards/" + ids["brd"]
	ids["tag"] = n.ID(t, board+"/tags", object{"name": "Mobile"})
	ids["ctc"] = n.ID(t, "/v1/contacts/identify", object{"externalUserId": "u-1"})
	ids["pst"] = n.ID(t, board+"/posts", object{"title": "Dark mode"})
	other = n.ID(t, board+"/posts", object{"title": "Light mode"})
	ids["cmt"] = n.ID(t, "/v1/posts/"+ids["pst"]+"/comments", object{"body": object{"text": "Me too."}})
	ids["chg"] = n.ID(t, board+"/changelog", object{"title": "Dark at last"})
	ids["usr"] = n.ID(t, "/v1/members", object{"email": "ines@example.com", "name": "Ines"})
	ids["key"] = n.ID(t, "/v1/api-keys", object{"name": "Spare", "scope": "read"})
	ids["wgs"] = n.ID(t, "/v1/widget/secrets", nil)
	ids["sub"] = n.Submission(t, ids["brd"], ids["pst"])
	hook := "/v1/webhooks/" + ids["whk"]
	log := n.Do(t, http.MethodGet, hook+"/deliveries", nil)
	ids["dlv"] = log.Body["data"].([]any)[0].(object)["id"].(string)
	ids["rcv"] = n.Recovered(t, ids["whk"])
	ids["dsr"] = n.Finished(t, n.ID(t, "/v1/contacts/"+ids["ctc"]+"/export", nil))
	return ids, other
}

// owned replaces the ids of an example by ids that exist.
func owned(example object, ids map[string]string, other string) object {
	out := object{}
	for name, value := range example {
		switch value := value.(type) {
		case string:
			if id, ok := ids[strings.SplitN(value, "_", 2)[0]]; ok && strings.HasSuffix(name, "_id") {
				out[name] = id
				continue
			}
		case []any:
			items := []any{}
			for _, item := range value {
				text, _ := item.(string)
				switch {
				case strings.HasPrefix(text, "pst_"):
					item = other
				case strings.HasPrefix(text, "tag_"):
					item = ids["tag"]
				}
				items = append(items, item)
			}
			out[name] = items
			continue
		}
		out[name] = value
	}
	return out
}

func TestTheExampleOfEveryActionWorks(t *testing.T) {
	tier.OneByOne(t)
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	ran := 0
	// Reads change nothing, so they share an organization. Each write has its own.
	read := app.Tenant(t)
	tools := newAgent(t, app, read.Key).everyTool(t)
	readIDs, readOther := belongings(t, read)
	for name, tool := range tools {
		input := compiled(t, tool.InputSchema)
		for _, e := range tool.InputSchema.(object)["examples"].([]any) {
			example := e.(object)
			require.NoError(t, input.Validate(e), "%s %v", name, e)
			n, ids, other := read, readIDs, readOther
			if !tool.Annotations.ReadOnlyHint {
				n = app.Tenant(t)
				ids, other = belongings(t, n)
			}
			if confirm, ok := example["confirm_name"].(string); ok {
				ids["brd"] = n.ID(t, "/v1/boards", object{"name": confirm}) // an empty board
			}
			if example["action"] == "erase_member" {
				n.Make(t, http.MethodDelete, "/v1/members/"+ids["usr"], nil) // only removed members can be erased
			}
			got := post(t, n, calling(name, owned(example, ids, other)))
			require.NotContains(t, string(got.Raw), `"isError":true`, "%s %v", name, example)
			require.Contains(t, string(got.Raw), `"structuredContent":{"`)
			ran++
		}
	}
	require.Len(t, operations(t), ran)
}
