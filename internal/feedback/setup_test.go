package feedback_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/ent/db/event"
	catalogue "earshot/internal/event"
	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

type object = map[string]any

// together runs tests in parallel against one running service. Each gets an
// organization of its own.
func together(t *testing.T, tests map[string]func(*testing.T, *tenant), environ ...string) {
	t.Helper()
	app := testkit.Start(t, testkit.Options{Environ: environ})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, &tenant{app.Tenant(t), app})
		})
	}
}

type tenant struct {
	*testkit.Tenant
	app *testkit.App
}

// on is a tenant of another plan in the same service.
func (n *tenant) on(t *testing.T, plan string) *tenant {
	t.Helper()
	return &tenant{n.app.TenantOn(t, plan), n.app}
}

// listen registers a webhook for the events, or for all of them.
func (n *tenant) listen(t *testing.T, events ...catalogue.Type) string {
	t.Helper()
	if events == nil {
		events = catalogue.Types
	}
	return n.ID(t, "/v1/webhooks", object{"url": "https://hooks.example.com/in", "events": events})
}

// post is the path of a new post on a new board.
func (n *tenant) post(t *testing.T) string {
	t.Helper()
	return "/v1/posts/" + n.ID(t, n.board(t)+"/posts", object{"title": "Dark mode"})
}

// board is the path of a new board.
func (n *tenant) board(t *testing.T) string {
	t.Helper()
	return "/v1/boards/" + n.ID(t, "/v1/boards", object{"name": "Ideas"})
}

func (n *tenant) get(t *testing.T, path string) object {
	t.Helper()
	return n.Make(t, http.MethodGet, path, nil)
}

func (n *tenant) patch(t *testing.T, path string, body any) object {
	t.Helper()
	return n.Make(t, http.MethodPatch, path, body)
}

func (n *tenant) identify(t *testing.T, body any) object {
	t.Helper()
	return n.Make(t, http.MethodPost, "/v1/contacts/identify", body)
}

// refused sends a request that must fail, with a code, and change nothing.
func (n *tenant) refused(t *testing.T, code, method, path string, body any) testkit.Answer {
	t.Helper()
	unchanged := n.Watch(t)
	a := n.Do(t, method, path, body)
	require.Equal(t, code, a.Code(), "%s", a.Raw)
	unchanged(t)
	return a
}

// recorded are the organization's events, oldest first.
func (n *tenant) recorded(t *testing.T) []*db.Event {
	t.Helper()
	return n.app.Store.Client().Event.Query().Order(db.Asc(event.FieldID)).AllX(n.Context(t.Context()))
}

// payloads are the recorded events of a type, decoded, oldest first.
func (n *tenant) payloads(t *testing.T, of catalogue.Type) []object {
	t.Helper()
	var found []object
	for _, e := range n.recorded(t) {
		if e.Type == string(of) {
			var p object
			require.NoError(t, json.Unmarshal(e.Payload, &p))
			found = append(found, p)
		}
	}
	return found
}

// deliveries are those of an event.
func (n *tenant) deliveries(t *testing.T, e *db.Event) []*db.Delivery {
	t.Helper()
	return n.app.Store.Client().Delivery.Query().Where(delivery.EventID(e.ID)).AllX(n.Context(t.Context()))
}

// walk reads a list page by page and returns all ids.
func (n *tenant) walk(t *testing.T, path string, limit string, between func()) []string {
	t.Helper()
	var ids []string
	for next := path + "?limit=" + limit; ; {
		a := n.Do(t, http.MethodGet, next, nil)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		for _, item := range a.Body["data"].([]any) {
			ids = append(ids, item.(object)["id"].(string))
		}
		cursor, more := a.Body["nextCursor"].(string)
		if !more {
			return ids
		}
		between()
		next = path + "?limit=" + limit + "&cursor=" + cursor
	}
}

// atOnce does something several times at the same moment and returns all
// answers.
func atOnce(count int, do func(i int) testkit.Answer) []testkit.Answer {
	answers := make([]testkit.Answer, count)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			<-start
			answers[i] = do(i)
		})
	}
	close(start)
	all.Wait()
	return answers
}

// atOnce sends the same request several times at the same moment.
func (n *tenant) atOnce(t *testing.T, count int, method, path string, body func(i int) any) []testkit.Answer {
	t.Helper()
	return atOnce(count, func(i int) testkit.Answer { return request{n, method, path, body(i)}.do(t) })
}

// statuses counts answers by status.
func statuses(answers []testkit.Answer) map[int]int {
	counts := map[int]int{}
	for _, a := range answers {
		counts[a.Status]++
	}
	return counts
}

// values are a member of each answer's data, sorted.
func values(answers []testkit.Answer, name string) []string {
	var all []string
	for _, a := range answers {
		if v, ok := a.Data()[name].(string); ok {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// without is a copy that lacks some members.
func without(o object, names ...string) object {
	rest := maps.Clone(o)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}
