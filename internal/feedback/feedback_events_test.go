package feedback_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

func TestAnEvent(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"is written once with a delivery for each webhook that subscribes": fanOut,
		"isn't sent when no webhook subscribes":                            nobodySubscribes,
		"isn't sent to a webhook that is disabled":                         disabledWebhook,
		"comes with its change or not at all":                              changeOrNothing,
		"has the payload that the specification states":                    payloadShapes,
		"shows the bytes that are sent wherever it is read":                sameBytes,
		"stays in its organization":                                        ownEvents,
		"of each type matches the webhooks of the contract":                eventsByContract,
		"of each type goes to the webhooks that subscribe to the type":     eachSubscription,
		"of each type stays in its organization":                           ownEventsOfEachType,
		"has the keys of its type, also for null values":                   payloadsOfNulls,
		"isn't caused by any other change":                                 quietLife,
	})
}

func fanOut(t *testing.T, n *tenant) {
	post := n.Post(t)
	first, second := n.Listen(t), n.Listen(t, event.VoteCreated, event.CommentCreated)
	n.Listen(t, event.PostCreated)
	n.ID(t, post+"/votes", nil)
	events := n.Recorded(t)
	require.Len(t, events, 1)
	require.Equal(t, "vote.created", events[0].Type)
	var hooks []string
	for _, d := range n.Deliveries(t, events[0]) {
		hooks = append(hooks, d.WebhookID.String())
		require.Equal(t, "vote.created", d.EventType)
		require.Equal(t, "pending", string(d.Status))
		require.NotNil(t, d.NextAttemptAt, "the outbox finds it by this")
		require.Equal(t, d.CreatedAt, *d.NextAttemptAt)
	}
	require.ElementsMatch(t, []string{first, second}, hooks)
}

func nobodySubscribes(t *testing.T, n *tenant) {
	n.Listen(t, event.ContactDeleted)
	n.ID(t, n.Post(t)+"/votes", nil)
	require.Empty(t, n.Recorded(t))
	require.Len(t, n.Kept(t), 2, "for the feed")
}

func disabledWebhook(t *testing.T, n *tenant) {
	hook := "/v1/webhooks/" + n.Listen(t)
	n.Patch(t, hook, object{"enabled": false})
	post := n.Post(t)
	require.Empty(t, n.Recorded(t))
	n.Patch(t, hook, object{"enabled": true, "events": []string{"vote.created"}})
	n.ID(t, post+"/comments", object{"body": object{"text": "x"}})
	n.ID(t, post+"/votes", nil)
	require.Len(t, n.Recorded(t), 1)
}

// The change and its deliveries are in one transaction. If the database refuses a delivery, the
// change fails too.
func changeOrNothing(t *testing.T, n *tenant) {
	post, board := n.Post(t), n.Board(t)
	merged := n.ID(t, "/v1/boards/"+n.Get(t, post)["boardId"].(string)+"/posts", object{"title": "x"})
	entry := n.changelogEntry(t, object{"title": "x"})
	n.Listen(t)
	contact := n.Identify(t, object{"externalUserId": "u-1"})
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
		{http.MethodPost, board + "/changelog", object{"title": "x", "publishedAt": apptest.LongPast}},
		{http.MethodPatch, entry, object{"title": "y", "publishedAt": apptest.LongPast}},
	} {
		a := n.Refused(t, "ERR_INTERNAL", r.method, r.path, r.body)
		require.Equal(t, http.StatusInternalServerError, a.Status)
		require.NotContains(t, string(a.Raw), "no deliveries today")
	}
}

func payloadShapes(t *testing.T, n *tenant) {
	n.Listen(t)
	n.Identify(t, object{"externalUserId": "u-1"})
	n.Identify(t, object{"externalUserId": "u-1", "name": "Ada"})
	post := n.Post(t)
	n.Patch(t, post, object{"status": "planned"})
	n.ID(t, post+"/votes", nil)
	n.Comment(t, post, n.Comment(t, post, ""))
	contact := "contact{id,externalUserId,email,name,plan,mrrCents,currency,source,consentBasis,metadata{},firstSeenAt,lastSeenAt,createdAt,updatedAt}"
	comment := "{event,organizationId,boardId,comment{id,postId,parentId,authorUserId,bodyText,createdAt}}"
	require.Equal(t, []string{
		"{event,organizationId," + contact + "}",
		"{event,organizationId," + contact + ",changes{name{from,to}}}",
		"{event,organizationId,boardId,post{id,title,slug,status,createdAt}}",
		"{event,organizationId,boardId,post{id,title,slug,status,createdAt},previousStatus}",
		"{event,organizationId,boardId,vote{id,postId,userId,createdAt}}",
		comment, comment,
	}, shapes(t, n.Recorded(t)))
}

// sameBytes sends a text with characters that encoders write in different ways.
func sameBytes(t *testing.T, n *tenant) {
	hook := n.Listen(t)
	const odd = "<b>&amp;</b> \u2028\u2029 \"\\/ é 🎉 \t\u007f \ufffd"
	n.Make(t, http.MethodPost, n.Board(t)+"/posts", object{"title": odd})
	n.Do(t, http.MethodPost, "/v1/contacts/identify", `{"externalUserId":"u-1","metadata": { "<&>" : [ 1.0 , 1e400, "\u00e9\u2028é", "/\/" ] } }`)
	log := n.Walk(t, "/v1/webhooks/"+hook+"/deliveries", "50", func() {})
	events := n.Recorded(t)
	require.Len(t, log, len(events))
	for i, e := range events {
		read := n.Do(t, http.MethodGet, "/v1/webhooks/"+hook+"/deliveries/"+log[len(log)-1-i], nil)
		_, rest, ok := bytes.Cut(read.Raw, []byte(`"payload":`))
		require.True(t, ok, "%s", read.Raw)
		require.Equal(t, string(e.Payload), string(rest[:min(len(rest), len(e.Payload))]))
		require.Equal(t, e.ID.String(), read.Data()["eventId"])
		require.Empty(t, read.Data()["attempts"])
	}
	post := n.Payloads(t, event.PostCreated)[0]["post"].(object)
	require.Equal(t, odd, post["title"])
}

func ownEvents(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	stranger.Listen(t)
	n.Post(t)
	require.Empty(t, stranger.Recorded(t))
	require.Empty(t, n.Recorded(t))
}

// everyEvent causes one event of each type and returns the types in this order.
func (n *tenant) everyEvent(t *testing.T) []event.Type {
	t.Helper()
	contact := n.Person(t, "u-1")
	n.Patch(t, contact, object{"name": "Ada Lovelace", "metadata": object{}})
	board := n.Board(t)
	post := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "Dark mode", "contactId": strings.TrimPrefix(contact, "/v1/contacts/")})
	n.Patch(t, post, object{"status": "planned"})
	n.ID(t, post+"/votes", nil)
	n.Comment(t, post, "")
	n.ID(t, board+"/changelog", object{"title": "Dark mode", "publishedAt": apptest.LongPast})
	n.Make(t, http.MethodDelete, contact, nil)
	return []event.Type{
		event.ContactCreated, event.ContactUpdated, event.PostCreated, event.PostStatusChanged,
		event.VoteCreated, event.CommentCreated, event.ChangelogPublished, event.ContactDeleted,
	}
}

func eventsByContract(t *testing.T, n *tenant) {
	n.Listen(t)
	want := n.everyEvent(t)
	require.ElementsMatch(t, event.Types, want)
	events := n.Recorded(t)
	var types []event.Type
	for _, e := range events {
		types = append(types, event.Type(e.Type))
	}
	require.Equal(t, want, types, "each once")
	apptest.ByContract(t, events)
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
		hooks[of] = "/v1/webhooks/" + n.Listen(t, of)
	}
	n.everyEvent(t)
	for of, hook := range hooks {
		log := n.Do(t, http.MethodGet, hook+"/deliveries", nil).Body["data"].([]any)
		require.Len(t, log, 1, of)
		require.Equal(t, string(of), log[0].(object)["eventType"])
		delivery := n.Get(t, hook+"/deliveries/"+log[0].(object)["id"].(string))
		require.Equal(t, string(of), delivery["payload"].(object)["event"])
	}
}

func ownEventsOfEachType(t *testing.T, n *tenant) {
	stranger := n.on(t, "business")
	stranger.Listen(t)
	n.Listen(t)
	n.everyEvent(t)
	require.Empty(t, stranger.Recorded(t))
	for _, e := range n.Recorded(t) {
		require.Contains(t, string(e.Payload), `"organizationId":"`+n.Organization.ID.String()+`"`)
		require.NotContains(t, string(e.Payload), stranger.Organization.ID.String())
		require.Len(t, n.Deliveries(t, e), 1)
	}
}

// payloadsOfNulls sets all nullable fields to null.
func payloadsOfNulls(t *testing.T, n *tenant) {
	n.Listen(t)
	contact := "/v1/contacts/" + n.ID(t, "/v1/contacts", object{})
	n.Patch(t, contact, object{"externalUserId": "u-1", "mrrCents": 0, "currency": "EUR"})
	n.Patch(t, contact, object{"externalUserId": nil, "mrrCents": nil, "currency": nil})
	n.Make(t, http.MethodDelete, contact, nil)
	n.Identify(t, object{"externalUserId": "u-2"})
	n.ID(t, n.Board(t)+"/changelog", object{"title": "🎉", "publishedAt": "0001-01-01T00:00:00Z"})
	post := n.Post(t)
	n.Comment(t, post, n.Comment(t, post, ""))
	apptest.ByContract(t, n.Recorded(t))
	gone := n.Payloads(t, event.ContactDeleted)[0]
	require.Equal(t, object{"id": strings.TrimPrefix(contact, "/v1/contacts/"), "externalUserId": nil}, gone["contact"])
	require.Len(t, n.Recorded(t), 9)
}

// quietLife makes changes that cause no event.
func quietLife(t *testing.T, n *tenant) {
	n.Listen(t)
	board := n.Board(t)
	post := "/v1/posts/" + n.ID(t, board+"/posts", object{"title": "x"})
	told := len(n.Recorded(t))
	n.Patch(t, post, object{"title": "y", "status": "open"})
	n.Make(t, http.MethodDelete, post+"/votes", nil)
	tag := n.ID(t, board+"/tags", object{"name": "Mobile"})
	n.Patch(t, post, object{"tagIds": []string{tag}})
	entry := "/v1/changelog/" + n.ID(t, board+"/changelog", object{"title": "x", "publishedAt": apptest.FarAway})
	n.Patch(t, entry, object{"publishedAt": nil})
	n.put(t, entry+"/linked-posts", object{"postIds": []string{strings.TrimPrefix(post, "/v1/posts/")}})
	n.Make(t, http.MethodDelete, entry, nil)
	n.Make(t, http.MethodDelete, post, nil)
	n.NewKeyOf(t, object{"name": "x", "scope": "read"})
	n.Patch(t, board, object{"description": "x"})
	require.Len(t, n.Recorded(t), told)
}

// refuseDeliveries makes the database refuse the organization's deliveries from now on.
func refuseDeliveries(t *testing.T, n *tenant) {
	t.Helper()
	id := n.Organization.ID.UUID().String()
	_, err := n.App.Pool.Exec(t.Context(), `ALTER TABLE deliveries ADD CONSTRAINT "no deliveries today `+id+
		`" CHECK (organization_id <> '`+id+`') NOT VALID`)
	require.NoError(t, err)
}

// shapes returns the keys of each payload, in their order.
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

// shape reads an object after its opening brace. No payload contains a list.
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
