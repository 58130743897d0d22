package api_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"earshot/api/gen"
	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/mcp"
	"earshot/worker"
)

func TestMain(m *testing.M) {
	apptest.Main(m, apptest.WithParts(mcp.Module), apptest.WithWorker(worker.Module))
}

// together runs tests in parallel against one running service. Each test makes its own
// organization.
func together(t *testing.T, app *apptest.App, tests map[string]func(*testing.T, *apptest.App)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, app)
		})
	}
}

type object = map[string]any

// fixture is an organization with one resource for each parameter of a path.
type fixture struct {
	*apptest.Tenant
	// ids are by the name of the path parameter.
	ids map[string]string
}

func newFixture(t *testing.T, app *apptest.App) fixture {
	t.Helper()
	n := app.Tenant(t)
	// The operator allows these e-mails. Otherwise, the organization can't switch them on.
	app.Store.Client().Organization.UpdateOneID(n.Organization.ID).SetSubscriberMailsAllowed(true).ExecX(n.Context(t.Context()))
	ids := map[string]string{}
	ids["webhookId"] = n.ID(t, "/v1/webhooks", object{"url": "https://hooks.example.com/in", "events": event.Types})
	ids["boardId"] = n.ID(t, "/v1/boards", object{"name": "Ideas"})
	ids["tagId"] = n.ID(t, "/v1/boards/"+ids["boardId"]+"/tags", object{"name": "Mobile"})
	ids["contactId"] = n.ID(t, "/v1/contacts/identify", object{"externalUserId": "u-1"})
	ids["postId"] = n.ID(t, "/v1/boards/"+ids["boardId"]+"/posts", object{"title": "Dark mode"})
	ids["commentId"] = n.ID(t, "/v1/posts/"+ids["postId"]+"/comments", object{"body": object{"text": "Me too."}})
	ids["entryId"] = n.ID(t, "/v1/boards/"+ids["boardId"]+"/changelog", object{"title": "Dark at last"})
	ids["memberId"] = n.ID(t, "/v1/members", object{"email": "kim@example.com", "name": "Kim"})
	ids["keyId"] = n.ID(t, "/v1/api-keys", object{"name": "Spare", "scope": "read"})
	ids["secretId"] = n.ID(t, "/v1/widget/secrets", nil)
	ids["submissionId"] = n.Submission(t, ids["boardId"], ids["postId"])
	log := n.Do(t, http.MethodGet, "/v1/webhooks/"+ids["webhookId"]+"/deliveries", nil)
	newest := log.Body["data"].([]any)[0].(object)
	ids["deliveryId"] = newest["id"].(string)
	ids["recoveryId"] = n.Recovered(t, ids["webhookId"])
	ids["subjectRequestId"] = n.Finished(t, n.ID(t, "/v1/contacts/"+ids["contactId"]+"/export", nil))
	return fixture{n, ids}
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// filled returns the operation's path with the ids.
func (o operation) filled(t *testing.T, ids map[string]string) string {
	t.Helper()
	return placeholder.ReplaceAllStringFunc(o.path, func(name string) string {
		id, ok := ids[strings.Trim(name, "{}")]
		require.True(t, ok, "the tests have no value for %s of %s", name, o.path)
		return id
	})
}

// parameters returns the names in the operation's path.
func (o operation) parameters() []string {
	var names []string
	for _, m := range placeholder.FindAllStringSubmatch(o.path, -1) {
		names = append(names, m[1])
	}
	return names
}

func (o operation) writes() bool {
	return (*o.Security)[0]["apiKey"][0] == string(gen.APIKeyScopeReadWrite)
}

func (o operation) media() *openapi3.MediaType {
	return o.RequestBody.Value.Content.Get("application/json")
}

func (o operation) schema() *openapi3.Schema { return o.media().Schema.Value }

// request returns a valid body of the operation, or nil without a body. It has the required members
// of the contract's example, or all members if none is required.
func (o operation) request(t *testing.T) any {
	t.Helper()
	if o.RequestBody == nil {
		return nil
	}
	given := examples(t, o.media())
	body := given[slices.Sorted(maps.Keys(given))[0]].(object)
	if required := required(o.schema()); len(required) > 0 {
		maps.DeleteFunc(body, func(name string, _ any) bool { return !slices.Contains(required, name) })
	}
	return body
}

// everyOperation runs a test for each wanted operation, or for all. `make race` leaves these tests
// out.
func everyOperation(t *testing.T, wanted func(operation) bool, test func(*testing.T, operation)) {
	t.Helper()
	tier.OneByOne(t)
	n := 0
	for where, o := range load(t).operations() {
		if wanted == nil || wanted(o) {
			n++
			t.Run(where, func(t *testing.T) { test(t, o) })
		}
	}
	require.Positive(t, n)
}
