package apptest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/ent/db/event"
	catalogue "earshot/internal/event"
)

// KeysPath is the path of the list of API keys.
const KeysPath = "/v1/api-keys"

// NewKeyOf creates a key and returns the answer's data.
func (n *Tenant) NewKeyOf(t *testing.T, body Object) Object {
	t.Helper()
	return n.Make(t, http.MethodPost, KeysPath, body)
}

// Moment parses a time in a member of an object.
func Moment(t *testing.T, o Object, name string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(o[name]))
	require.NoError(t, err, "%s: %v", name, o[name])
	return at
}

// Later compares two times. Their text doesn't sort, because trailing zeros are omitted.
func Later(t *testing.T, after, before Object, name string) {
	t.Helper()
	require.True(t, Moment(t, after, name).After(Moment(t, before, name)), "%v isn't after %v", after[name], before[name])
}

// FieldRules returns the fields that validation refused, each with its rule.
func FieldRules(a Answer) []string {
	list, _ := a.Details()["fields"].([]any)
	rules := make([]string, len(list))
	for i, f := range list {
		rules[i] = fmt.Sprint(f.(Object)["field"], " ", f.(Object)["rule"])
	}
	return rules
}

// Two times long past and two in the far future.
const (
	LongPast = "2020-05-17T10:11:12Z"
	LessPast = "2021-01-02T03:04:05Z"
	FarAway  = "2100-01-01T00:00:00Z"
	Farther  = "2200-01-01T00:00:00Z"
)

// NewPosts creates posts on a new board and returns their ids.
func (n *Tenant) NewPosts(t *testing.T, count int) []any {
	t.Helper()
	board, ids := n.Board(t), make([]any, count)
	for i := range ids {
		ids[i] = n.ID(t, board+"/posts", Object{"title": "x"})
	}
	return ids
}

// Comment creates a comment and returns its id. With a parent the comment is a reply.
func (n *Tenant) Comment(t *testing.T, post, parent string) string {
	t.Helper()
	body := Object{"body": Object{"text": "x"}}
	if parent != "" {
		body["parentId"] = parent
	}
	return n.ID(t, post+"/comments", body)
}

// Person creates a contact with EveryTrait and returns its path.
func (n *Tenant) Person(t *testing.T, externalUserID string) string {
	t.Helper()
	return "/v1/contacts/" + n.ID(t, "/v1/contacts", With(externalUserID, EveryTrait))
}

// EveryTrait has a value for each trait of a contact.
var EveryTrait = Object{
	"email": "ada@example.com", "name": "Ada", "plan": "team", "mrrCents": 4900, "currency": "EUR",
	"metadata": Object{"seats": 12},
}

// With returns the body of a contact with traits.
func With(externalUserID string, traits Object) Object {
	body := Object{"externalUserId": externalUserID}
	for name, v := range traits {
		body[name] = v
	}
	return body
}

// Forged returns a cursor to another place of the list. The path must return a page with a cursor.
func (n *Tenant) Forged(t *testing.T, page, place string) string {
	t.Helper()
	given := n.Do(t, http.MethodGet, page, nil).Body["nextCursor"].(string)
	raw, err := base64.RawURLEncoding.DecodeString(given)
	require.NoError(t, err)
	list, _, _ := strings.Cut(string(raw), "/")
	return base64.RawURLEncoding.EncodeToString([]byte(list + "/" + place))
}

// Listen registers a webhook for the events, or for all of them.
func (n *Tenant) Listen(t *testing.T, events ...catalogue.Type) string {
	t.Helper()
	if events == nil {
		events = catalogue.Types
	}
	return n.ID(t, "/v1/webhooks", Object{"url": "https://hooks.example.com/in", "events": events})
}

// Post creates a post on a new board and returns its path.
func (n *Tenant) Post(t *testing.T) string {
	t.Helper()
	return "/v1/posts/" + n.ID(t, n.Board(t)+"/posts", Object{"title": "Dark mode"})
}

// Board creates a board and returns its path.
func (n *Tenant) Board(t *testing.T) string {
	t.Helper()
	return "/v1/boards/" + n.ID(t, "/v1/boards", Object{"name": "Ideas"})
}

// Get returns a resource.
func (n *Tenant) Get(t *testing.T, path string) Object {
	t.Helper()
	return n.Make(t, http.MethodGet, path, nil)
}

// Patch changes a resource and returns its new state.
func (n *Tenant) Patch(t *testing.T, path string, body any) Object {
	t.Helper()
	return n.Make(t, http.MethodPatch, path, body)
}

// Identify sends an identify request and returns the contact.
func (n *Tenant) Identify(t *testing.T, body any) Object {
	t.Helper()
	return n.Make(t, http.MethodPost, "/v1/contacts/identify", body)
}

// Refused sends a request that must fail with the code and change no data.
func (n *Tenant) Refused(t *testing.T, code, method, path string, body any) Answer {
	t.Helper()
	unchanged := n.Watch(t)
	a := n.Do(t, method, path, body)
	require.Equal(t, code, a.Code(), "%s", a.Raw)
	unchanged(t)
	return a
}

// Recorded returns the events that are sent to a webhook, oldest first.
func (n *Tenant) Recorded(t *testing.T) []*db.Event {
	t.Helper()
	return slices.DeleteFunc(n.Kept(t), func(e *db.Event) bool { return len(n.Deliveries(t, e)) == 0 })
}

// Kept returns all events of the organization, oldest first.
func (n *Tenant) Kept(t *testing.T) []*db.Event {
	t.Helper()
	return n.App.Store.Client().Event.Query().Order(db.Asc(event.FieldID)).AllX(n.Context(t.Context()))
}

// Payloads returns the decoded recorded events of a type, oldest first.
func (n *Tenant) Payloads(t *testing.T, of catalogue.Type) []Object {
	t.Helper()
	var found []Object
	for _, e := range n.Recorded(t) {
		if e.Type == string(of) {
			var p Object
			require.NoError(t, json.Unmarshal(e.Payload, &p))
			found = append(found, p)
		}
	}
	return found
}

// Deliveries returns the deliveries of an event.
func (n *Tenant) Deliveries(t *testing.T, e *db.Event) []*db.Delivery {
	t.Helper()
	return n.App.Store.Client().Delivery.Query().Where(delivery.EventID(e.ID)).AllX(n.Context(t.Context()))
}

// Walk reads a list page by page and returns all ids. It calls between before each further page.
func (n *Tenant) Walk(t *testing.T, path string, limit string, between func()) []string {
	t.Helper()
	var ids []string
	for next := path + "?limit=" + limit; ; {
		a := n.Do(t, http.MethodGet, next, nil)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		for _, item := range a.Body["data"].([]any) {
			ids = append(ids, item.(Object)["id"].(string))
		}
		cursor, more := a.Body["nextCursor"].(string)
		if !more {
			return ids
		}
		between()
		next = path + "?limit=" + limit + "&cursor=" + cursor
	}
}

// Without returns a copy of the object without some members.
func Without(o Object, names ...string) Object {
	rest := maps.Clone(o)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

// Registration is the body of a webhook's registration.
var Registration = Object{"url": "https://hooks.example.com/in?token=1", "events": []string{"post.created"}}
