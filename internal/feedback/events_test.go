package feedback_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/internal/event"
	"earshot/internal/feedback"
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
	n.listen(t)
	contact := n.identify(t, object{"externalUserId": "u-1"})
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
