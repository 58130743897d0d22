package feedback_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/jackc/pgx/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/event"
	"earshot/internal/feedback"
	"earshot/internal/testkit"
)

var newKey = feedback.NewAPIKey{Name: "another", Scope: "read:write"}

func TestAnEvent(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is written once with a delivery for each webhook that subscribes": fanOut,
		"isn't written when nobody subscribes":                             nobodySubscribes,
		"isn't sent to a webhook that is disabled":                         disabledWebhook,
		"comes with its change or not at all":                              changeOrNothing,
		"has the payload that the specification states":                    payloadShapes,
		"shows the bytes that are sent wherever it is read":                sameBytes,
		"stays in its organization":                                        ownEvents,
		"of each type is what the contract's webhooks state":               eventsByContract,
		"of each type goes to whoever subscribes to that type":             eachSubscription,
		"of each type stays in its organization":                           ownEventsOfEachType,
		"has the keys of its type, whatever is null":                       payloadsOfNulls,
		"isn't caused by any other change":                                 quietLife,
	})
}

func fanOut(t *testing.T, n *tenant) {
	post := n.post(t)
	first, second := n.listen(t), n.listen(t, event.VoteCreated, event.CommentCreated)
	n.listen(t, event.PostCreated)
	n.ID(t, post+"/votes", nil)
	events := n.recorded(t)
	require.Len(t, events, 1)
	require.Equal(t, "vote.created", events[0].Type)
	var hooks []string
	for _, d := range n.deliveries(t, events[0]) {
		hooks = append(hooks, d.WebhookID.String())
		require.Equal(t, "vote.created", d.EventType)
		require.Equal(t, "pending", string(d.Status))
		require.NotNil(t, d.NextAttemptAt, "the outbox finds it by this")
		require.Equal(t, d.CreatedAt, *d.NextAttemptAt)
	}
	require.ElementsMatch(t, []string{first, second}, hooks)
}

func nobodySubscribes(t *testing.T, n *tenant) {
	n.listen(t, event.ContactDeleted)
	n.ID(t, n.post(t)+"/votes", nil)
	require.Empty(t, n.recorded(t))
}

func disabledWebhook(t *testing.T, n *tenant) {
	hook := "/v1/webhooks/" + n.listen(t)
	n.patch(t, hook, object{"enabled": false})
	post := n.post(t)
	require.Empty(t, n.recorded(t))
	n.patch(t, hook, object{"enabled": true, "events": []string{"vote.created"}})
	n.ID(t, post+"/comments", object{"body": object{"text": "x"}})
	n.ID(t, post+"/votes", nil)
	require.Len(t, n.recorded(t), 1)
}

// A delivery to a webhook that the database refuses takes the change with it:
// the rows are of one transaction.
func changeOrNothing(t *testing.T, n *tenant) {
	post, board := n.post(t), n.board(t)
	merged := n.ID(t, "/v1/boards/"+n.get(t, post)["boardId"].(string)+"/posts", object{"title": "x"})
	entry := n.changelogEntry(t, object{"title": "x"})
	n.listen(t)
	contact := n.identify(t, object{"externalUserId": "u-1"})
	contactPath := "/v1/contacts/" + contact["id"].(string)
	n.ID(t, board+"/posts", object{"title": "x", "contactId": contact["id"]})
	refuseDeliveries(t, n)
	for _, r := range []struct {
		method, path string
		body         object
	}{
		{http.MethodPost, board + "/posts", object{"title": "x"}},
		{http.MethodPatch, post, object{"status": "planned"}},
		{http.MethodPost, post + "/votes", nil},
		{http.MethodPost, post + "/comments", object{"body": object{"text": "x"}}},
		{http.MethodPost, "/v1/contacts/identify", object{"externalUserId": "u-2"}},
		{http.MethodPost, "/v1/contacts/identify", object{"externalUserId": contact["externalUserId"], "name": "Ada"}},
		{http.MethodPost, "/v1/contacts", object{"externalUserId": "u-2"}},
		{http.MethodPatch, contactPath, object{"name": "Ada"}},
		{http.MethodDelete, contactPath, nil},
		{http.MethodPost, post + "/merge", object{"sourceIds": []string{merged}}},
		{http.MethodPost, board + "/changelog", object{"title": "x", "publishedAt": longPast}},
		{http.MethodPatch, entry, object{"title": "y", "publishedAt": longPast}},
	} {
		a := n.refused(t, "ERR_INTERNAL", r.method, r.path, r.body)
		require.Equal(t, http.StatusInternalServerError, a.Status)
		require.NotContains(t, string(a.Raw), "no deliveries today")
	}
}

func payloadShapes(t *testing.T, n *tenant) {
	n.listen(t)
	n.identify(t, object{"externalUserId": "u-1"})
	n.identify(t, object{"externalUserId": "u-1", "name": "Ada"})
	post := n.post(t)
	n.patch(t, post, object{"status": "planned"})
	n.ID(t, post+"/votes", nil)
	n.comment(t, post, n.comment(t, post, ""))
	contact := "contact{id,externalUserId,email,name,plan,mrrCents,currency,source,consentBasis,metadata{},firstSeenAt,lastSeenAt,createdAt,updatedAt}"
	comment := "{event,organizationId,boardId,comment{id,postId,parentId,authorUserId,bodyText,createdAt}}"
	require.Equal(t, []string{
		"{event,organizationId," + contact + "}",
		"{event,organizationId," + contact + ",changes{name{from,to}}}",
		"{event,organizationId,boardId,post{id,title,slug,status,createdAt}}",
		"{event,organizationId,boardId,post{id,title,slug,status,createdAt},previousStatus}",
		"{event,organizationId,boardId,vote{id,postId,userId,createdAt}}",
		comment, comment,
	}, shapes(t, n.recorded(t)))
}

// sameBytes has a text with everything that encoders write in several ways.
func sameBytes(t *testing.T, n *tenant) {
	hook := n.listen(t)
	const odd = "<b>&amp;</b> \u2028\u2029 \"\\/ é 🎉 \t\u007f \ufffd"
	n.Make(t, http.MethodPost, n.board(t)+"/posts", object{"title": odd})
	n.Do(t, http.MethodPost, "/v1/contacts/identify", `{"externalUserId":"u-1","metadata": { "<&>" : [ 1.0 , 1e400, "\u00e9\u2028é", "/\/" ] } }`)
	log := n.walk(t, "/v1/webhooks/"+hook+"/deliveries", "50", func() {})
	events := n.recorded(t)
	require.Len(t, log, len(events))
	for i, e := range events {
		read := n.Do(t, http.MethodGet, "/v1/webhooks/"+hook+"/deliveries/"+log[len(log)-1-i], nil)
		_, rest, ok := bytes.Cut(read.Raw, []byte(`"payload":`))
		require.True(t, ok, "%s", read.Raw)
		require.Equal(t, string(e.Payload), string(rest[:min(len(rest), len(e.Payload))]))
		require.Equal(t, e.ID.String(), read.Data()["eventId"])
		require.Empty(t, read.Data()["attempts"])
	}
	post := n.payloads(t, event.PostCreated)[0]["post"].(object)
	require.Equal(t, odd, post["title"])
}

func ownEvents(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	stranger.listen(t)
	n.post(t)
	require.Empty(t, stranger.recorded(t))
	require.Empty(t, n.recorded(t))
}

// contractOfEvents are the schemas of the contract's section webhooks, by event.
// They are compiled as the test kit does with those of answers.
var contractOfEvents = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.Join(testkit.Root(), "api", "openapi.yaml"))
	if err != nil {
		return nil, err
	}
	text, err := doc.MarshalJSON()
	if err != nil {
		return nil, err
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", tree); err != nil {
		return nil, err
	}
	schemas := map[string]*jsonschema.Schema{}
	for name, item := range doc.Webhooks {
		ref := item.Post.RequestBody.Value.Content.Get("application/json").Schema.Ref
		if schemas[name], err = compiler.Compile("openapi.json" + ref); err != nil {
			return nil, err
		}
	}
	return schemas, nil
})

// byContract holds the bytes of events against the contract.
func byContract(t *testing.T, events []*db.Event) {
	t.Helper()
	schemas, err := contractOfEvents()
	require.NoError(t, err)
	require.Len(t, schemas, len(event.Delivered))
	for _, e := range events {
		payload, err := jsonschema.UnmarshalJSON(bytes.NewReader(e.Payload))
		require.NoError(t, err)
		require.Contains(t, schemas, e.Type)
		require.NoError(t, schemas[e.Type].Validate(payload), "%s", e.Payload)
		require.Equal(t, e.Type, payload.(object)["event"])
	}
}

// everyEvent causes one of each type, in the order that it returns.
func (n *tenant) everyEvent(t *testing.T) []event.Type {
	t.Helper()
	contact := n.person(t, "u-1")
	n.patch(t, contact, object{"name": "Ada Lovelace", "metadata": object{}})
	board := n.board(t)
	post := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "Dark mode", "contactId": strings.TrimPrefix(contact, "/v1/contacts/")})
	n.patch(t, post, object{"status": "planned"})
	n.ID(t, post+"/votes", nil)
	n.comment(t, post, "")
	n.ID(t, board+"/changelog", object{"title": "Dark mode", "publishedAt": longPast})
	n.Make(t, http.MethodDelete, contact, nil)
	return []event.Type{
		event.ContactCreated, event.ContactUpdated, event.PostCreated, event.PostStatusChanged,
		event.VoteCreated, event.CommentCreated, event.ChangelogPublished, event.ContactDeleted,
	}
}

func eventsByContract(t *testing.T, n *tenant) {
	n.listen(t)
	want := n.everyEvent(t)
	require.ElementsMatch(t, event.Types, want)
	events := n.recorded(t)
	var types []event.Type
	for _, e := range events {
		types = append(types, event.Type(e.Type))
	}
	require.Equal(t, want, types, "each once")
	byContract(t, events)
	contact := "contact{id,externalUserId,email,name,plan,mrrCents,currency,source,consentBasis,%s,firstSeenAt,lastSeenAt,createdAt,updatedAt}"
	post := "{event,organizationId,boardId,post{id,title,slug,status,createdAt}"
	require.Equal(t, []string{
		"{event,organizationId," + fmt.Sprintf(contact, "metadata{seats}") + "}",
		"{event,organizationId," + fmt.Sprintf(contact, "metadata{}") + ",changes{metadata{from{seats},to{}},name{from,to}}}",
		post + "}", post + ",previousStatus}",
		"{event,organizationId,boardId,vote{id,postId,userId,createdAt}}",
		"{event,organizationId,boardId,comment{id,postId,parentId,authorUserId,bodyText,createdAt}}",
		"{event,organizationId,boardId,entry{id,title,slug,publishedAt}}",
		"{event,organizationId,contact{id,externalUserId}}",
	}, shapes(t, events))
}

func eachSubscription(t *testing.T, n *tenant) {
	hooks := map[event.Type]string{}
	for _, of := range event.Types {
		hooks[of] = "/v1/webhooks/" + n.listen(t, of)
	}
	n.everyEvent(t)
	for of, hook := range hooks {
		log := n.Do(t, http.MethodGet, hook+"/deliveries", nil).Body["data"].([]any)
		require.Len(t, log, 1, of)
		require.Equal(t, string(of), log[0].(object)["eventType"])
		delivery := n.get(t, hook+"/deliveries/"+log[0].(object)["id"].(string))
		require.Equal(t, string(of), delivery["payload"].(object)["event"])
	}
}

func ownEventsOfEachType(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	stranger.listen(t)
	n.listen(t)
	n.everyEvent(t)
	require.Empty(t, stranger.recorded(t))
	for _, e := range n.recorded(t) {
		require.Contains(t, string(e.Payload), `"organizationId":"`+n.Organization.ID.String()+`"`)
		require.NotContains(t, string(e.Payload), stranger.Organization.ID.String())
		require.Len(t, n.deliveries(t, e), 1)
	}
}

// payloadsOfNulls has everything null that may be.
func payloadsOfNulls(t *testing.T, n *tenant) {
	n.listen(t)
	contact := "/v1/contacts/" + n.ID(t, "/v1/contacts", object{})
	n.patch(t, contact, object{"externalUserId": "u-1", "mrrCents": 0, "currency": "EUR"})
	n.patch(t, contact, object{"externalUserId": nil, "mrrCents": nil, "currency": nil})
	n.Make(t, http.MethodDelete, contact, nil)
	n.identify(t, object{"externalUserId": "u-2"})
	n.ID(t, n.board(t)+"/changelog", object{"title": "🎉", "publishedAt": "0001-01-01T00:00:00Z"})
	post := n.post(t)
	n.comment(t, post, n.comment(t, post, ""))
	byContract(t, n.recorded(t))
	gone := n.payloads(t, event.ContactDeleted)[0]
	require.Equal(t, object{"id": strings.TrimPrefix(contact, "/v1/contacts/"), "externalUserId": nil}, gone["contact"])
	require.Len(t, n.recorded(t), 9)
}

// quietLife does what nobody is told of.
func quietLife(t *testing.T, n *tenant) {
	n.listen(t)
	board := n.board(t)
	post := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x"})
	told := len(n.recorded(t))
	n.patch(t, post, object{"title": "y", "status": "open"})
	n.Make(t, http.MethodDelete, post+"/votes", nil)
	tag := n.ID(t, board+"/tags", object{"name": "Mobile"})
	n.patch(t, post, object{"tagIds": []string{tag}})
	entry := "/v1/changelog/" + n.ID(t, board+"/changelog", object{"title": "x", "publishedAt": farAway})
	n.patch(t, entry, object{"publishedAt": nil})
	n.put(t, entry+"/linked-posts", object{"postIds": []string{strings.TrimPrefix(post, "/v1/posts/")}})
	n.Make(t, http.MethodDelete, entry, nil)
	n.Make(t, http.MethodDelete, post, nil)
	n.newKeyOf(t, object{"name": "x", "scope": "read"})
	n.patch(t, board, object{"description": "x"})
	require.Len(t, n.recorded(t), told)
}

// refuseDeliveries makes the database refuse the organization's deliveries from
// now on.
func refuseDeliveries(t *testing.T, n *tenant) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), n.app.Config.DatabaseURL)
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	id := n.Organization.ID.UUID().String()
	_, err = c.Exec(t.Context(), `ALTER TABLE deliveries ADD CONSTRAINT "no deliveries today `+id+
		`" CHECK (organization_id <> '`+id+`') NOT VALID`)
	require.NoError(t, err)
}

// shapes are the keys of each payload, in their order.
func shapes(t *testing.T, events []*db.Event) []string {
	t.Helper()
	all := make([]string, len(events))
	for i, e := range events {
		d := json.NewDecoder(bytes.NewReader(e.Payload))
		_, err := d.Token()
		require.NoError(t, err)
		all[i] = "{" + strings.Join(shape(t, d), ",") + "}"
	}
	return all
}

// shape reads an object whose opening is read already. No payload has a list.
func shape(t *testing.T, d *json.Decoder) []string {
	t.Helper()
	var keys []string
	for d.More() {
		key, err := d.Token()
		require.NoError(t, err)
		value, err := d.Token()
		require.NoError(t, err)
		inner := ""
		if value == json.Delim('{') {
			inner = "{" + strings.Join(shape(t, d), ",") + "}"
		}
		keys = append(keys, key.(string)+inner)
	}
	_, err := d.Token()
	require.NoError(t, err)
	return keys
}
