package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

// A request can be wrong in its path, its query, the form of its body and what
// the domain makes of it. Whoever sent it learns all of that from one answer.
func TestEveryFailureOfARequestIsToldAtOnceWhereverItIs(t *testing.T) {
	t.Parallel()
	app := testkit.Start(t, testkit.Options{})
	n := newFixture(t, app)
	unchanged := n.Watch(t)
	board, webhook := n.ids["boardId"], n.ids["webhookId"]
	for name, c := range map[string]struct {
		method, path string
		body         any
		want         []string
	}{
		"two parameters of the query": {
			http.MethodGet, "/v1/webhooks/" + webhook + "/deliveries?limit=x&since=y&status=z", nil, []string{"limit", "since", "status"},
		},
		"path and query": {
			http.MethodGet, "/v1/webhooks/nonsense/deliveries?limit=0&since=&cursor=?", nil, []string{"webhookId", "limit", "since", "cursor"},
		},
		"both ids of a path": {
			http.MethodGet, "/v1/webhooks/" + board + "/deliveries/nonsense", nil, []string{"webhookId", "deliveryId"},
		},
		"path and body": {
			http.MethodPost, "/v1/boards/nonsense/posts", object{"title": "", "contactId": "x"}, []string{"boardId", "title", "contactId"},
		},
		"path and form of the body": {
			http.MethodPost, "/v1/boards/nonsense/posts", object{"title": 1, "body": object{"text": nil}}, []string{"boardId", "title", "body.text"},
		},
		"path and what is no body": {
			http.MethodPost, "/v1/boards/nonsense/posts", `{`, []string{"boardId", ""},
		},
		"the form of one member and the meaning of another": {
			http.MethodPost, "/v1/webhooks", object{"url": "http://10.0.0.1/", "events": "post.created"}, []string{"url", "events"},
		},
		"a type, an address and a pair": {
			http.MethodPost, "/v1/contacts/identify", object{"externalUserId": 1, "email": "nonsense", "currency": "EUR"},
			[]string{"externalUserId", "email", "mrrCents"},
		},
		"the form of what is required, and nothing else": {
			http.MethodPost, "/v1/boards", object{"name": 1}, []string{"name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := n.Do(t, c.method, c.path, c.body)
			require.Equal(t, "ERR_VALIDATION", a.Code(), "%s", a.Raw)
			require.ElementsMatch(t, c.want, a.Fields(), "%s", a.Raw)
		})
	}
	unchanged(t)
}
