package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/api/gen"
	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
	"earshot/webhook"
)

// contract is the document, with its schemas as JSON Schema 2020-12. They are compiled without
// kin-openapi, which uses the rules of OpenAPI 3.0 for a schema with references.
type contract struct {
	*openapi3.T
	json     []byte
	compiler *jsonschema.Compiler
}

var loadContract = sync.OnceValues(func() (*contract, error) {
	doc, err := api.Contract()
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
	apptest.CloseEnums(tree)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	return &contract{doc, text, compiler}, compiler.AddResource("openapi.json", tree)
})

func load(t *testing.T) *contract {
	t.Helper()
	c, err := loadContract()
	require.NoError(t, err)
	return c
}

// compiling guards the compiler, which isn't safe for concurrent use.
var compiling sync.Mutex

// check validates a value against a component schema, given by reference.
func (c *contract) check(ref string, value any) error {
	compiling.Lock()
	schema, err := c.compiler.Compile("openapi.json" + ref)
	compiling.Unlock()
	if err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	value, err = jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// The schemas are compiled when an answer needs them, so another test may not meet a mistake.
func TestEverySchemaOfTheContractCompiles(t *testing.T) {
	t.Parallel()
	c := load(t)
	compiling.Lock()
	defer compiling.Unlock()
	for name := range c.Components.Schemas {
		_, err := c.compiler.Compile("openapi.json#/components/schemas/" + name)
		require.NoError(t, err, name)
	}
}

type operation struct {
	*openapi3.Operation
	method, path string
}

// operations returns all operations of the REST interface, without the webhooks.
func (c *contract) operations() map[string]operation {
	all := map[string]operation{}
	for path, item := range c.Paths.Map() {
		for method, o := range item.Operations() {
			all[method+" "+path] = operation{o, method, path}
		}
	}
	return all
}

// bodies returns all request and response bodies, by their place in the contract.
func (c *contract) bodies() map[string]*openapi3.MediaType {
	all := map[string]*openapi3.MediaType{}
	add := func(where string, content openapi3.Content) {
		if m := content.Get("application/json"); m != nil {
			all[where] = m
		}
	}
	for where, o := range c.operations() {
		if o.RequestBody != nil {
			add(where+" request", o.RequestBody.Value.Content)
		}
		for status, r := range o.Responses.Map() {
			if r.Ref == "" {
				add(where+" "+status, r.Value.Content)
			}
		}
	}
	for name, r := range c.Components.Responses {
		add("error "+name, r.Value.Content)
	}
	for name, item := range c.Webhooks {
		add("event "+name, item.Post.RequestBody.Value.Content)
	}
	return all
}

// examples returns copies, because tests run in parallel and some change the examples.
func examples(t *testing.T, m *openapi3.MediaType) map[string]any {
	t.Helper()
	given := map[string]any{}
	if m.Example != nil {
		given["example"] = m.Example
	}
	for name, e := range m.Examples {
		given[name] = e.Value.Value
	}
	text, err := json.Marshal(given)
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

func TestTheContractIsAValidOpenAPIDocument(t *testing.T) {
	t.Parallel()
	c := load(t)
	require.True(t, c.IsOpenAPI31OrLater())
	require.NoError(t, c.Validate(t.Context(), openapi3.EnableMultiError()))
}

func TestEveryBodyHasANamedSchemaAndValidExamples(t *testing.T) {
	t.Parallel()
	c := load(t)
	for where, m := range c.bodies() {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			require.Regexp(t, "^#/components/schemas/", m.Schema.Ref, "an inline schema gets an ugly Go name")
			require.NotEmpty(t, examples(t, m))
			for name, example := range examples(t, m) {
				require.NoError(t, c.check(m.Schema.Ref, example), name)
			}
		})
	}
}

func TestAnswersWithTheSameSchemaReferToExamplesOfTheComponents(t *testing.T) {
	t.Parallel()
	answers := map[string][]*openapi3.MediaType{}
	for _, o := range load(t).operations() {
		for _, r := range o.Responses.Map() {
			if m := r.Value.Content.Get("application/json"); r.Ref == "" && m != nil {
				answers[m.Schema.Ref] = append(answers[m.Schema.Ref], m)
			}
		}
	}
	delete(answers, "#/components/schemas/DeletedEnvelope") // only an id, of another kind in each answer
	maps.DeleteFunc(answers, func(_ string, all []*openapi3.MediaType) bool { return len(all) == 1 })
	require.NotEmpty(t, answers)
	for schema, all := range answers {
		for _, m := range all {
			require.Nil(t, m.Example, schema)
			for name, e := range m.Examples {
				require.NotEmpty(t, e.Ref, "%s: example %s", schema, name)
			}
		}
	}
}

func TestAStrayMemberOfAnAnswerOrAnEventIsCaught(t *testing.T) {
	t.Parallel()
	c := load(t)
	for where, m := range c.bodies() {
		if strings.HasSuffix(where, " request") {
			continue
		}
		for name, example := range examples(t, m) {
			for _, object := range closedObjects(example) {
				object["stray"] = true
				require.Error(t, c.check(m.Schema.Ref, example), "%s %s: %v", where, name, object)
				delete(object, "stray")
			}
		}
	}
}

// closedObjects returns the objects in a value, without the free-form ones.
func closedObjects(value any) []map[string]any {
	var found []map[string]any
	switch value := value.(type) {
	case map[string]any:
		found = append(found, value)
		for name, member := range value {
			if !slices.Contains([]string{"metadata", "json", "payload", "details", "changes", "from", "to", "record"}, name) {
				found = append(found, closedObjects(member)...)
			}
		}
	case []any:
		for _, item := range value {
			found = append(found, closedObjects(item)...)
		}
	}
	return found
}

func TestUnknownMembersOfARequestAreAllowed(t *testing.T) {
	t.Parallel()
	c := load(t)
	for where, m := range c.bodies() {
		if !strings.HasSuffix(where, " request") {
			continue
		}
		for _, example := range examples(t, m) {
			example.(map[string]any)["createdAt"] = "2026-03-12T10:41:07.233Z"
			require.NoError(t, c.check(m.Schema.Ref, example), where)
		}
	}
}

func TestEveryOperationHasAUniqueIDAndDocumentation(t *testing.T) {
	t.Parallel()
	c := load(t)
	ids := map[string]bool{}
	for where, o := range c.operations() {
		require.Regexp(t, "^[a-z]+[A-Z][A-Za-z]+$", o.OperationID, where)
		require.False(t, ids[o.OperationID], "%s is used twice", o.OperationID)
		ids[o.OperationID] = true
		require.NotEmpty(t, o.Summary, where)
		require.NotEmpty(t, o.Description, where)
		require.Len(t, o.Tags, 1, where)
		require.NotNil(t, c.Tags.Get(o.Tags[0]), where)
	}
}

func TestReadingNeedsTheScopeReadAndEverythingElseReadWrite(t *testing.T) {
	t.Parallel()
	for where, o := range load(t).operations() {
		scope := string(gen.APIKeyScopeReadWrite)
		if o.method == http.MethodGet {
			scope = string(gen.APIKeyScopeRead)
		}
		require.NotNil(t, o.Security, where)
		require.Equal(t, openapi3.SecurityRequirements{{"apiKey": {scope}}}, *o.Security, where)
	}
}

func TestEveryOperationDeclaresTheErrorsThatApply(t *testing.T) {
	t.Parallel()
	names := map[int]string{
		401: "Unauthorized", 402: "PlanLimit", 403: "Forbidden", 404: "NotFound", 409: "Conflict",
		410: "Gone", 412: "PreconditionFailed",
		413: "PayloadTooLarge", 415: "UnsupportedMediaType", 422: "ValidationFailed", 429: "RateLimited", 500: "InternalError",
		503: "Unavailable",
	}
	for where, o := range load(t).operations() {
		want := []int{401, 403, 422, 429, 500, 503}
		if strings.Contains(o.path, "{") {
			want = append(want, 404)
		}
		if o.RequestBody != nil {
			// castVote had no body at first, so a request without one must still work.
			require.Equal(t, o.OperationID != "castVote", o.RequestBody.Value.Required, where)
			want = append(want, 413, 415)
		}
		if o.takes("Idempotency-Key") {
			want = append(want, 409)
		}
		for _, status := range want {
			require.NotNil(t, o.Responses.Status(status), "%s: %d", where, status)
		}
		for code, r := range o.Responses.Map() {
			status, err := strconv.Atoi(code)
			require.NoError(t, err, where)
			if status == 410 && o.takes("includeDeleted") {
				require.Equal(t, "#/components/responses/CursorGone", r.Ref, where)
				continue
			}
			if status >= 400 {
				require.Equal(t, "#/components/responses/"+names[status], r.Ref, where)
			}
		}
	}
}

func TestEveryAnswerDeclaresItsHeaders(t *testing.T) {
	t.Parallel()
	budget := []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id"}
	for where, o := range load(t).operations() {
		for code, r := range o.Responses.Map() {
			want, optional := budget, ""
			switch {
			case o.takes("Idempotency-Key") && code < "300":
				want, optional = append([]string{"Idempotent-Replayed"}, budget...), "Idempotent-Replayed"
			case code == "409":
				want, optional = append([]string{"Retry-After"}, budget...), "Retry-After" // only for a request in progress
			}
			if code == "304" || r.Value.Headers["ETag"] != nil { // TestEverySingleResource… checks the operations
				want = append([]string{"ETag"}, want...)
			}
			switch code {
			case "401":
				want = []string{"WWW-Authenticate", "X-Request-Id"}
			case "429":
				want = append([]string{"Retry-After"}, budget...)
			case "500":
				want = []string{"X-Request-Id"}
			case "503":
				want = []string{"Retry-After", "X-Request-Id"}
			}
			require.Equal(t, want, slices.Sorted(maps.Keys(r.Value.Headers)), "%s %s", where, code)
			for name, h := range r.Value.Headers {
				require.True(t, h.Value.Required || name == optional, "%s %s %s", where, code, name)
			}
		}
	}
}

func TestEveryPropertyIsDescribedOrNamedByItsSchema(t *testing.T) {
	t.Parallel()
	for name, schema := range load(t).Components.Schemas {
		all := []*openapi3.SchemaRef{schema}
		all = append(all, schema.Value.AllOf...)
		for _, s := range all {
			for property, p := range s.Value.Properties {
				if p.Ref == "" && p.Value.Const == nil {
					require.NotEmpty(t, p.Value.Description, "%s.%s", name, property)
				}
			}
		}
	}
}

func TestEveryMemberOfAnAnswerIsAlwaysThere(t *testing.T) {
	t.Parallel()
	optional := map[string]bool{
		"ErrorBody.details": true,
		// An item has either a contact or an error.
		"IdentifiedContact.contact": true, "IdentifiedContact.created": true, "IdentifiedContact.error": true,
	}
	// Only in the order of changes, or by revenue. Other answers stay as in the specification.
	optional["Post.revenue"] = true
	for _, list := range []string{"PostList", "CommentList", "ChangelogEntryList", "ContactList"} {
		optional[list+".deleted"], optional[list+".syncCursor"] = true, true
	}
	for name, schema := range load(t).Components.Schemas {
		if strings.HasSuffix(name, "Request") || strings.HasSuffix(name, "Input") || name == "ContactTraits" || name == "ErrorDetails" {
			continue
		}
		for _, s := range append([]*openapi3.SchemaRef{schema}, schema.Value.AllOf...) {
			for property := range s.Value.Properties {
				if !optional[name+"."+property] {
					require.Contains(t, s.Value.Required, property, name)
				}
			}
		}
	}
}

func TestEveryEventHasAPayloadOfItsOwnName(t *testing.T) {
	t.Parallel()
	c := load(t)
	var listed, sent []string
	for _, e := range event.Delivered {
		listed = append(listed, string(e))
	}
	for name, item := range c.Webhooks {
		sent = append(sent, name)
		body := item.Post.RequestBody.Value.Content.Get("application/json")
		require.Equal(t, name, body.Schema.Value.Properties["event"].Value.Const)
		require.Equal(t, name, body.Example.(map[string]any)["event"])
	}
	require.ElementsMatch(t, listed, sent)
	require.Equal(t, listed, enum(c, "DeliveryEventType"))
	require.Equal(t, listed[:len(event.Types)], enum(c, "EventType"), "what can be subscribed to")
}

func enum(c *contract, schema string) []string {
	var values []string
	of := c.Components.Schemas[schema].Value
	known, _ := of.Extensions["x-extensible-enum"].([]any)
	for _, v := range slices.Concat(of.Enum, known) {
		values = append(values, v.(string))
	}
	return values
}

func TestAnEnumThatMayGrowIsMarkedAsOpenAndAcceptsOtherValues(t *testing.T) {
	t.Parallel()
	var tree any
	require.NoError(t, json.Unmarshal(load(t).json, &tree))
	grows, open := regexp.MustCompile(`(?i)\bmore\s(values\s)?may\sbe\sadded`), 0
	var check func(where string, node any)
	check = func(where string, node any) {
		switch node := node.(type) {
		case map[string]any:
			description, _ := node["description"].(string)
			if grows.MatchString(description) || node["x-extensible-enum"] != nil {
				require.Equal(t, true, node["x-open"], where)
			}
			if node["x-open"] != nil {
				open++
				require.Regexp(t, grows, description, where)
				require.NotContains(t, node, "enum", "%s: a closed enum", where)
			}
			for name, child := range node {
				check(where+"/"+name, child)
			}
		case []any:
			for i, child := range node {
				check(fmt.Sprint(where, "/", i), child)
			}
		}
	}
	check("", tree.(map[string]any)["components"])
	require.NotZero(t, open)
}

func TestTheGeneratedEnumerationsKnowTheContractsValues(t *testing.T) {
	t.Parallel()
	c := load(t)
	known := map[string]func(string) bool{
		"AllPostsSort":        func(v string) bool { return gen.AllPostsSort(v).Valid() },
		"ApiKeyScope":         func(v string) bool { return gen.APIKeyScope(v).Valid() },
		"ChangelogEntryState": func(v string) bool { return gen.ChangelogEntryState(v).Valid() },
		"ContactSort":         func(v string) bool { return gen.ContactSort(v).Valid() },
		"MemberRole":          func(v string) bool { return gen.MemberRole(v).Valid() },
		"SubmissionKind":      func(v string) bool { return gen.SubmissionKind(v).Valid() },
		"SubmissionReason":    func(v string) bool { return gen.SubmissionReason(v).Valid() },
		"PostSort":            func(v string) bool { return gen.PostSort(v).Valid() },
		"ErasedText":          func(v string) bool { return gen.ErasedText(v).Valid() },
		"BillingState":        func(v string) bool { return gen.BillingState(v).Valid() },
		"DeliveryEventType":   func(v string) bool { return gen.DeliveryEventType(v).Valid() },
		"DeliveryStatus":      func(v string) bool { return gen.DeliveryStatus(v).Valid() },
		"EventType":           func(v string) bool { return gen.EventType(v).Valid() },
		"Plan":                func(v string) bool { return gen.Plan(v).Valid() },
		"PostStatus":          func(v string) bool { return gen.PostStatus(v).Valid() },
		"RecoveryStatus":      func(v string) bool { return gen.RecoveryStatus(v).Valid() },
	}
	for name, schema := range c.Components.Schemas {
		if len(schema.Value.Enum) == 0 {
			continue
		}
		require.Contains(t, known, name)
		require.False(t, known[name]("nonsense"))
		for _, v := range enum(c, name) {
			require.True(t, known[name](v), "%s %s", name, v)
		}
	}
}

func TestTheGeneratedRequestsKeepAbsentAndNullApart(t *testing.T) {
	t.Parallel()
	var left, null, set gen.UpdatePostRequest
	require.NoError(t, json.Unmarshal([]byte(`{}`), &left))
	require.NoError(t, json.Unmarshal([]byte(`{"contactId":null,"body":{"json":null}}`), &null))
	require.NoError(t, json.Unmarshal([]byte(`{"contactId":"ctc_1","body":{"json":[9007199254740993]}}`), &set))
	require.False(t, left.ContactID.IsSpecified())
	require.True(t, null.ContactID.IsNull())
	require.Equal(t, "ctc_1", set.ContactID.MustGet())
	require.Nil(t, left.Body)
	require.JSONEq(t, "null", string(null.Body.JSON))
	require.Equal(t, "[9007199254740993]", string(set.Body.JSON), "through a float64 the number would change")
}

func TestTheSignatureInTheIntroductionIsRight(t *testing.T) {
	t.Parallel()
	c := load(t)
	find := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(c.Info.Description)
		require.NotNil(t, found, pattern)
		return found[1]
	}
	header, secret, body := find(`X-Service-Signature: (t=\S+)`), find("`(whsec_[0-9A-Za-z]+)`"), find(`(?m)^(\{"event".*\})$`)
	require.NoError(t, webhook.Verify(secret, header, []byte(body), time.Unix(1773312067, 0)))
	require.Equal(t, header, c.Components.Parameters["ServiceSignatureParam"].Value.Example)
	var payload any
	require.NoError(t, json.Unmarshal([]byte(body), &payload))
	require.Equal(t, c.Webhooks["post.created"].Post.RequestBody.Value.Content.Get("application/json").Example, payload)
}

func TestTheContractNeverNamesTheProduct(t *testing.T) {
	t.Parallel()
	require.NotContains(t, strings.ToLower(string(load(t).json)), "earshot")
}

// TestEachOperationNamesItsPathParameters requires them at each operation. Some viewers and
// generators ignore parameters that are declared once for a path.
func TestEachOperationNamesItsPathParameters(t *testing.T) {
	t.Parallel()
	inBraces := regexp.MustCompile(`{(\w+)}`)
	for path, item := range load(t).Paths.Map() {
		require.Empty(t, item.Parameters, path)
		for method, operation := range item.Operations() {
			for _, name := range inBraces.FindAllStringSubmatch(path, -1) {
				require.NotNil(t, operation.Parameters.GetByInAndName("path", name[1]), "%s %s: %s", method, path, name[1])
			}
		}
	}
}
