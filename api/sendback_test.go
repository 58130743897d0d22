package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

// edits reports whether the operation changes a resource that can be read.
func edits(o operation) bool { return o.method == http.MethodPatch || o.method == http.MethodPut }

// lists are the lists with the resource of an edit, by the edit's operation, and singles are the
// operations that read one such resource. TestEveryWritableFieldIsReturnedByEveryRead uses both,
// and fails for an edit without a read.
var (
	lists = map[string][]string{
		"updateBoard":          {"listBoards"},
		"updateTag":            {"listTags"},
		"updatePost":           {"listPosts", "listContactPosts"},
		"updateComment":        {"listComments"},
		"updateChangelogEntry": {"listChangelog"},
		"replaceLinkedPosts":   {"listChangelog"},
		"updateContact":        {"listContacts"},
		"updateWebhook":        {"listWebhooks"},
		"updateMember":         {"listMembers"},
		"replaceWidgetOrigins": {}, // there is only one
		"updateOrganization":   {},
	}
	singles = map[string]string{
		"updateBoard": "getBoard", "updatePost": "getPost", "updateChangelogEntry": "getChangelogEntry",
		"replaceLinkedPosts": "getChangelogEntry", "updateContact": "getContact", "updateWebhook": "getWebhook",
		"updateMember": "getMember", "replaceWidgetOrigins": "getWidgetOrigins", "updateOrganization": "getOrganization",
	}
)

// named returns the operation with an id.
func named(t *testing.T, id string) operation {
	t.Helper()
	for _, o := range load(t).operations() {
		if o.OperationID == id {
			return o
		}
	}
	require.Fail(t, "the contract has no operation "+id)
	return operation{}
}

// reads returns the schemas of the resource in all answers: of the edit itself, of its creation,
// alone and in lists.
func (o operation) reads(t *testing.T) map[string]*openapi3.Schema {
	t.Helper()
	all := map[string]*openapi3.Schema{"the edit": o.resource("200")}
	for _, id := range lists[o.OperationID] {
		all[id] = named(t, id).resource("200").Items.Value
	}
	if id := singles[o.OperationID]; id != "" {
		all[id] = named(t, id).resource("200")
	}
	return all
}

// resource returns the schema of the resource in an answer.
func (o operation) resource(status string) *openapi3.Schema {
	return properties(o.Responses.Value(status).Value.Content.Get("application/json").Schema.Value)["data"]
}

func TestEveryWritableFieldIsReturnedByEveryRead(t *testing.T) {
	t.Parallel()
	everyOperation(t, edits, func(t *testing.T, o operation) {
		require.NotEmpty(t, append(lists[o.OperationID], singles[o.OperationID]), "the tests don't know where to read what this changes")
		for where, read := range o.reads(t) {
			requireReturned(t, where, o.schema(), read, told[o.OperationID]...)
		}
	})
	// A creation's members can be read, too.
	for id, edit := range map[string]string{
		"createBoard": "updateBoard", "createTag": "updateTag", "createPost": "updatePost", "createComment": "updateComment",
		"createChangelogEntry": "updateChangelogEntry", "createContact": "updateContact", "identifyContact": "updateContact",
		"createWebhook": "updateWebhook", "createMember": "updateMember",
	} {
		for where, read := range named(t, edit).reads(t) {
			requireReturned(t, where, named(t, id).schema(), read, told[id]...)
		}
	}
}

// told are members that identify the author. The answer has contactId instead.
var told = map[string][]string{
	"createComment": {"externalUserId", "createContact"}, "createPost": {"externalUserId", "createContact"}, "updatePost": {"externalUserId", "createContact"},
}

// requireReturned requires that each written member can be read, down to nested members.
func requireReturned(t *testing.T, where string, written, read *openapi3.Schema, but ...string) {
	t.Helper()
	for _, option := range read.OneOf {
		if option.Value.Type.Includes("object") {
			read = option.Value
		}
	}
	for name, s := range properties(written) {
		back := properties(read)[name]
		if back == nil && slices.Contains(but, name) {
			continue
		}
		require.NotNil(t, back, "%s doesn't return %s", where, name)
		requireReturned(t, where+" "+name, s, back)
	}
}

func TestAResourceThatWasRead(t *testing.T) {
	t.Parallel()
	together(t, roomy.Start(t), map[string]func(*testing.T, *apptest.App){
		"changes nothing when it is sent back as it was read alone":  sentBackAlone,
		"changes nothing when it is sent back as it stood in a list": sentBackFromLists,
		"is the same alone, in every list and after a change":        sameEverywhere,
		"can be sent back member by member":                          sentBackByMember,
		"takes other values, or refuses them":                        sentBackWithOthers,
	})
}

// rich returns an organization whose resources have a value in every member. It also has resources
// in unusual states.
func rich(t *testing.T, app *apptest.App) (fixture, map[string][]map[string]string) {
	t.Helper()
	n := newFixture(t, app)
	board := "/v1/boards/" + n.ids["boardId"]
	one := func(pairs ...string) map[string]string {
		ids := maps.Clone(n.ids)
		for i := 0; i < len(pairs); i += 2 {
			ids[pairs[i]] = pairs[i+1]
		}
		return ids
	}
	document := json.RawMessage(`{ "type":"doc", "n":[9007199254740993,1e400,-0,1.0], "text":"<b>\u2028\u0000", "b":{}, "a":null }`)
	body := object{"json": document, "text": "  Zwei\r\n\tZeilen é😀 <b>&amp;</b>\u2028 "}
	contact := n.ID(t, "/v1/contacts", object{
		"externalUserId": " u 2 ", "email": "Ada@Example.com", "name": "Ada é", "plan": "team", "mrrCents": 0, "currency": "EUR", "metadata": document,
	})
	tag := n.ID(t, board+"/tags", object{"name": "ÄÖÜ", "color": "#AbCdEf"})
	post := n.ID(t, board+"/posts", object{"title": "Rich", "body": body, "contactId": contact, "tagIds": []string{tag, n.ids["tagId"]}})
	n.Make(t, http.MethodPatch, "/v1/posts/"+post, object{"hideFromRoadmap": true, "status": "shipped"})
	n.ID(t, "/v1/posts/"+post+"/votes", nil)
	comment := n.ID(t, "/v1/posts/"+post+"/comments", object{"body": body})
	reply := n.ID(t, "/v1/posts/"+post+"/comments", object{"body": body, "parentId": comment})
	merged := n.ID(t, board+"/posts", object{"title": "Merged", "body": body, "contactId": contact})
	n.Make(t, http.MethodPost, "/v1/posts/"+post+"/merge", object{"sourceIds": []string{merged}})
	published := n.ID(t, board+"/changelog", object{"title": "Out", "version": " 1.0 ", "body": body, "publishedAt": "2026-03-12T10:41:07.123456+02:00"})
	scheduled := n.ID(t, board+"/changelog", object{"title": "Soon", "publishedAt": "2199-03-12T10:41:07.999999Z"})
	n.Make(t, http.MethodPut, "/v1/changelog/"+published+"/linked-posts", object{"postIds": []string{merged, post, n.ids["postId"]}})
	disabled := n.ID(t, "/v1/webhooks", object{
		"url": "https://hooks.example.com/é?a=%20b&c", "events": event.Types,
		"description": " <b>é\n ", "metadata": object{"": "", "Key.Of\x00Ours": "<b>\u2028\x00😀", "0": "null"},
	})
	n.Make(t, http.MethodPatch, "/v1/webhooks/"+disabled, object{"enabled": false})
	n.Make(t, http.MethodPut, "/v1/widget/origins", object{"origins": []string{"https://app.example.com", "http://localhost:3000"}})
	n.Patch(t, "/v1/organization", object{"color": "#0F766E", "publicClosed": true, "blockedWords": []string{" Café ", "<b>", "cafe\u0301", "💩"}})
	plain := n.ID(t, "/v1/boards", object{"name": "Plain", "description": " <b>é\n "})
	entries := []map[string]string{one(), one("entryId", published), one("entryId", scheduled)}
	return n, map[string][]map[string]string{
		"updateBoard":          {one(), one("boardId", plain)},
		"updateTag":            {one(), one("tagId", tag)},
		"updatePost":           {one(), one("postId", post, "contactId", contact), one("postId", merged, "contactId", contact)},
		"updateComment":        {one(), one("postId", post, "commentId", comment), one("postId", post, "commentId", reply)},
		"updateChangelogEntry": entries,
		"replaceLinkedPosts":   entries,
		"updateContact":        {one(), one("contactId", contact)},
		"updateWebhook":        {one(), one("webhookId", disabled)},
		"updateMember":         {one(), one("memberId", n.Owner.ID.String())},
		"replaceWidgetOrigins": {one()},
		"updateOrganization":   {one()},
	}
}

// last is the parameter that names the operation's own resource.
func (o operation) last() string { return o.parameters()[len(o.parameters())-1] }

// alone reads one resource. It returns nil if that isn't possible.
func (n fixture) alone(t *testing.T, o operation, ids map[string]string) json.RawMessage {
	t.Helper()
	if singles[o.OperationID] == "" {
		return nil
	}
	a := n.Do(t, http.MethodGet, named(t, singles[o.OperationID]).filled(t, ids), nil)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	var read struct{ Data json.RawMessage }
	require.NoError(t, json.Unmarshal(a.Raw, &read))
	return read.Data
}

// listed returns a resource from a list. It returns nil if the resource doesn't belong there.
func (n fixture) listed(t *testing.T, list string, o operation, ids map[string]string) json.RawMessage {
	t.Helper()
	if list == "listContactPosts" && ids["postId"] == n.ids["postId"] {
		return nil // the post has no contact
	}
	a := n.Do(t, http.MethodGet, named(t, list).filled(t, ids)+"?limit=50", nil)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
	var read struct{ Data []json.RawMessage }
	require.NoError(t, json.Unmarshal(a.Raw, &read))
	i := slices.IndexFunc(read.Data, func(item json.RawMessage) bool { return bytes.Contains(item, []byte(`"id":"`+ids[o.last()]+`"`)) })
	require.GreaterOrEqual(t, i, 0, "%s doesn't show %s", list, ids[o.last()])
	return read.Data[i]
}

// sendBack sends a resource back, byte for byte and encoded anew, with other white space, order and
// escapes.
func (n fixture) sendBack(t *testing.T, o operation, ids map[string]string, read json.RawMessage) {
	t.Helper()
	var value any
	d := json.NewDecoder(bytes.NewReader(read))
	d.UseNumber()
	require.NoError(t, d.Decode(&value))
	anew, err := json.MarshalIndent(value, "", "\t")
	require.NoError(t, err)
	unchanged := n.Watch(t)
	for _, body := range []string{string(read), string(anew)} {
		a := n.Do(t, o.method, o.filled(t, ids), body)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		unchanged(t)
	}
}

func sentBackAlone(t *testing.T, app *apptest.App) {
	n, all := rich(t, app)
	canRead := func(o operation) bool { return edits(o) && singles[o.OperationID] != "" }
	everyOperation(t, canRead, func(t *testing.T, o operation) {
		for _, ids := range all[o.OperationID] {
			n.sendBack(t, o, ids, n.alone(t, o, ids))
		}
	})
}

func sentBackFromLists(t *testing.T, app *apptest.App) {
	n, all := rich(t, app)
	everyOperation(t, edits, func(t *testing.T, o operation) {
		for _, ids := range all[o.OperationID] {
			for _, list := range lists[o.OperationID] {
				if read := n.listed(t, list, o, ids); read != nil {
					n.sendBack(t, o, ids, read)
				}
			}
		}
	})
}

func sameEverywhere(t *testing.T, app *apptest.App) {
	n, all := rich(t, app)
	everyOperation(t, edits, func(t *testing.T, o operation) {
		for _, ids := range all[o.OperationID] {
			var edited struct{ Data json.RawMessage }
			body := map[string]json.RawMessage{}
			if strings.HasPrefix(o.OperationID, "replace") || o.OperationID == "updateComment" {
				read := n.alone(t, o, ids)
				if len(lists[o.OperationID]) > 0 {
					read = n.listed(t, lists[o.OperationID][0], o, ids)
				}
				require.NoError(t, json.Unmarshal(read, &body))
			}
			require.NoError(t, json.Unmarshal(n.Do(t, o.method, o.filled(t, ids), body).Raw, &edited))
			want := plain(t, edited.Data)
			for _, list := range lists[o.OperationID] {
				if read := n.listed(t, list, o, ids); read != nil {
					require.Equal(t, want, plain(t, read), list)
				}
			}
			if read := n.alone(t, o, ids); read != nil {
				got := plain(t, read)
				maps.DeleteFunc(got, func(name string, _ json.RawMessage) bool { return want[name] == nil })
				require.Equal(t, want, got, "alone")
			}
		}
	})
}

// plain returns the members with their unparsed text.
func plain(t *testing.T, resource json.RawMessage) map[string]json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(resource, &members))
	return members
}

// whole returns a resource with the members of all its reads.
func (n fixture) whole(t *testing.T, o operation, ids map[string]string) map[string]json.RawMessage {
	t.Helper()
	all := map[string]json.RawMessage{}
	for _, list := range lists[o.OperationID] {
		if read := n.listed(t, list, o, ids); read != nil {
			maps.Copy(all, plain(t, read))
		}
	}
	if read := n.alone(t, o, ids); read != nil {
		maps.Copy(all, plain(t, read))
	}
	return all
}

// only returns a body with one member, and with the members that the operation requires.
func (o operation) only(name string, value json.RawMessage, all map[string]json.RawMessage) map[string]json.RawMessage {
	body := map[string]json.RawMessage{}
	for _, needed := range required(o.schema()) {
		body[needed] = all[needed]
	}
	if name == "mrrCents" || name == "currency" { // they come together
		body["mrrCents"], body["currency"] = all["mrrCents"], all["currency"]
	}
	body[name] = value
	return body
}

func sentBackByMember(t *testing.T, app *apptest.App) {
	n, all := rich(t, app)
	everyOperation(t, edits, func(t *testing.T, o operation) {
		for _, ids := range all[o.OperationID] {
			unchanged := n.Watch(t)
			read := n.whole(t, o, ids)
			for name, value := range read {
				a := n.Do(t, o.method, o.filled(t, ids), o.only(name, value, read))
				require.Equal(t, http.StatusOK, a.Status, "%s: %s", name, a.Raw)
			}
			unchanged(t)
		}
	})
}

// kept are the members that the service keeps, by edit. Everybody may send any value, which changes
// nothing.
var kept = map[string][]string{
	"updateBoard": {"createdAt", "updatedAt"}, "updateTag": {"createdAt", "updatedAt"}, "updateMember": {"createdAt", "updatedAt"},
	"updateOrganization":   {"createdAt", "updatedAt"},
	"updatePost":           {"voteCount", "commentCount", "revenue", "lastActivityAt", "createdAt", "updatedAt"},
	"updateComment":        {"createdAt", "updatedAt", "deletedAt"},
	"updateChangelogEntry": {"createdAt", "updatedAt"}, "replaceLinkedPosts": {"createdAt", "updatedAt"},
	"updateContact": {"firstSeenAt", "lastSeenAt", "postCount", "voteCount", "commentCount", "createdAt", "updatedAt"},
	"updateWebhook": {"disabledAt", "disabledReason", "consecutiveFailures", "createdAt", "updatedAt"},
}

// others are valid values of members that are no booleans.
var others = map[string]string{
	"name": `"Other"`, "slug": `"other"`, "description": `"Other"`, "title": `"Other"`, "body": `{"json":null,"text":"Other"}`, "version": `"9"`,
	"color": `"#123456"`, "status": `"planned"`, "role": `"admin"`, "email": `"other@example.com"`, "publishedAt": `"2026-01-01T00:00:00Z"`,
	"externalUserId": `"other"`, "plan": `"other"`, "metadata": `{"a":"b"}`, "url": `"https://other.example.com/"`,
	"events": `["vote.created"]`, "maxPerSecond": `7`, "origins": `["https://other.example.com"]`, "blockedWords": `["other"]`,
}

// other returns another value than the current one. A member that the operation does not take may
// get any value.
func other(name string, current json.RawMessage, ids map[string]string) json.RawMessage {
	switch text := string(current); {
	case text == "true":
		return json.RawMessage("false")
	case text == "false":
		return json.RawMessage("true")
	case text == "null" && name == "contactId":
		return json.RawMessage(`"` + ids[name] + `"`)
	case text == "[]" && (name == "tagIds" || name == "postIds"):
		return json.RawMessage(`["` + ids[strings.TrimSuffix(name, "s")] + `"]`)
	case name == "tagIds" || name == "postIds":
		return json.RawMessage("[]")
	case others[name] == "":
		return json.RawMessage(`"else"`)
	}
	return json.RawMessage(others[name])
}

func sentBackWithOthers(t *testing.T, app *apptest.App) {
	n, all := rich(t, app)
	everyOperation(t, edits, func(t *testing.T, o operation) {
		ids := all[o.OperationID][0]
		if o.OperationID == "replaceLinkedPosts" {
			ids = all[o.OperationID][1] // updateChangelogEntry changes the first
		}
		for _, name := range slices.Sorted(maps.Keys(n.whole(t, o, ids))) {
			read := n.whole(t, o, ids)
			unchanged := n.Watch(t)
			body := o.only(name, other(name, read[name], ids), read)
			if name == "mrrCents" || name == "currency" {
				body["mrrCents"], body["currency"] = json.RawMessage("7"), json.RawMessage(`"USD"`)
				if string(read["currency"]) == `"USD"` {
					body["mrrCents"], body["currency"] = json.RawMessage("8"), json.RawMessage(`"EUR"`)
				}
			}
			a := n.Do(t, o.method, o.filled(t, ids), body)
			switch {
			case properties(o.schema())[name] != nil:
				require.Equal(t, http.StatusOK, a.Status, "%s: %s", name, a.Raw)
				require.NotEqual(t, string(read[name]), string(n.whole(t, o, ids)[name]), name)
			case slices.Contains(kept[o.OperationID], name):
				require.Equal(t, http.StatusOK, a.Status, "%s: %s", name, a.Raw)
				unchanged(t)
			default:
				require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s: %s", name, a.Raw)
				require.Equal(t, [][2]string{{name, "read_only"}}, rules(a), "%s", a.Raw)
				unchanged(t)
			}
		}
	})
}

func TestAMemberThatAWriteDoesNotTake(t *testing.T) {
	t.Parallel()
	app := roomy.Start(t)
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	everyOperation(t, func(o operation) bool { return o.method != http.MethodGet }, func(t *testing.T, o operation) {
		body, _ := o.request(t).(object)
		body = maps.Clone(body)
		if body == nil {
			body = object{}
		}
		body["nonsense"] = 1
		a := n.Do(t, o.method, o.filled(t, n.ids), body)
		require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s", a.Raw)
		require.Equal(t, [][2]string{{"nonsense", "unknown"}}, rules(a), "%s", a.Raw)
	})
	unchanged(t)
	for name, slip := range map[string]struct{ path, body, field, nearest string }{
		"an address for a vote":          {"/v1/posts/" + n.ids["postId"] + "/votes", `{"email":"ada@example.com"}`, "email", "contactId, createContact, externalUserId"},
		"an id in snake case for a vote": {"/v1/posts/" + n.ids["postId"] + "/votes", `{"external_user_id":"u-1"}`, "external_user_id", "is externalUserId"},
		"a contact in snake case":        {"/v1/posts/" + n.ids["postId"] + "/comments", `{"body":{"text":"x"},"contact_id":"x"}`, "contact_id", "is contactId"},
		"a member of a text":             {"/v1/posts/" + n.ids["postId"] + "/comments", `{"body":{"text":"x","html":"x"}}`, "body.html", "json, text"},
		"a status of a new post":         {"/v1/boards/" + n.ids["boardId"] + "/posts", `{"title":"x","status":"planned"}`, "status", ""},
		"a member like a place":          {"/v1/contacts/batch", `{"contacts":[{"externalUserId":"u-1"}],"contacts[5].x":1}`, `"contacts[5].x"`, "is contacts"},
		"a trait of a contact":           {"/v1/contacts/identify", `{"externalUserId":"u-1","mrr_cents":1}`, "mrr_cents", "is mrrCents"},
	} {
		t.Run(name, func(t *testing.T) {
			a := n.Do(t, http.MethodPost, slip.path, slip.body)
			require.Equal(t, http.StatusUnprocessableEntity, a.Status, "%s", a.Raw)
			require.Equal(t, [][2]string{{slip.field, "unknown"}}, rules(a), "%s", a.Raw)
			require.Contains(t, string(a.Raw), slip.nearest)
		})
	}
	unchanged(t)
}

func TestARetractionByItsBodyRetractsNothing(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	votes := n.Post(t) + "/votes"
	n.Make(t, http.MethodPost, votes, nil)
	unchanged := n.Watch(t)
	a := n.Do(t, http.MethodDelete, votes, `{"externalUserId":"u-1"}`)
	require.Equal(t, [][2]string{{"externalUserId", "unknown"}}, rules(a), "%s", a.Raw)
	require.Contains(t, string(a.Raw), "its query takes contactId, externalUserId")
	unchanged(t)
	for _, body := range []string{"", "null", "{}"} {
		require.Equal(t, http.StatusOK, n.Do(t, http.MethodDelete, votes, body).Status, body)
	}
}

// Unknown members are listed up to a limit. Those behind it still count.
func TestManyUnknownMembersOfItemsHideNoOthers(t *testing.T) {
	t.Parallel()
	n := apptest.Start(t, apptest.Options{}).Tenant(t)
	unchanged := n.Watch(t)
	for _, path := range []string{"/v1/contacts/batch", "/v1/contacts/identify/batch"} {
		items := make([]string, 100)
		for i := range items {
			items[i] = fmt.Sprintf(`{"externalUserId":"u-%d","phone":1,"tags":2,"0":3}`, i)
		}
		list := `{"contacts":[` + strings.Join(items, ",") + `]`
		a := n.Do(t, http.MethodPost, path, list+`}`)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		for i, result := range a.Body["data"].([]any) {
			require.Contains(t, result, "error", "item %d", i)
			fields := result.(object)["error"].(object)["details"].(object)["fields"].([]any)
			require.Len(t, fields, 3, "item %d", i)
		}
		a = n.Do(t, http.MethodPost, path, list+`,"dryRun":true}`)
		require.Equal(t, [][2]string{{"dryRun", "unknown"}}, rules(a), "%s", a.Raw)
		many := `{"contacts":[],` + strings.Repeat(`"x":1,`, 100_000) + `"y":1}`
		a = n.Do(t, http.MethodPost, path, many)
		require.Equal(t, http.StatusUnprocessableEntity, a.Status)
		require.Less(t, len(rules(a)), 100)
	}
	unchanged(t)
}
