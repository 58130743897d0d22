package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"earshot/api"
	"earshot/internal/testkit/apptest"
	"earshot/mcp"
)

func TestMain(m *testing.M) { apptest.Main(m, apptest.WithParts(mcp.Module)) }

type object = map[string]any

// withKey is a transport that sends an API key.
type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// agent is a client of the official SDK, connected over HTTP.
type agent struct {
	*sdk.ClientSession
	// outputs are the schemas that the tools announce. Every answer is validated against its
	// schema.
	outputs map[string]*jsonschema.Schema
}

func newAgent(t *testing.T, app *apptest.App, key string) agent {
	t.Helper()
	session, err := connect(t.Context(), app.URL, key)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	a := agent{session, map[string]*jsonschema.Schema{}}
	for name, tool := range a.everyTool(t) {
		a.outputs[name] = compiled(t, tool.OutputSchema)
	}
	return a
}

func compiled(t *testing.T, schema any) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	// The library allows 254 characters, the specification 320.
	c.RegisterFormat(&jsonschema.Format{Name: "email", Validate: func(any) error { return nil }})
	tree, err := jsonschema.UnmarshalJSON(strings.NewReader(indented(t, schema)))
	require.NoError(t, err)
	require.NoError(t, c.AddResource("tool.json", tree))
	s, err := c.Compile("tool.json")
	require.NoError(t, err)
	return s
}

func connect(ctx context.Context, url, key string) (*sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	return client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: url + mcp.Path, HTTPClient: &http.Client{Transport: withKey(key)}, DisableStandaloneSSE: true,
	}, nil)
}

// answer is the answer of a tool, with numbers as they were written.
type answer struct {
	failed bool
	body   object
	raw    string
}

func (a answer) data() object { data, _ := a.body["data"].(object); return data }

func (a answer) code() string {
	e, _ := a.body["error"].(object)
	code, _ := e["code"].(string)
	return code
}

// fields returns the names of the fields that validation refused.
func (a answer) fields() (names []string) {
	e, _ := a.body["error"].(object)
	details, _ := e["details"].(object)
	list, _ := details["fields"].([]any)
	for _, f := range list {
		names = append(names, f.(object)["field"].(string))
	}
	return names
}

// call calls a tool. Arguments are encoded, unless they are JSON already.
func (a agent) call(t *testing.T, tool string, arguments any) answer {
	t.Helper()
	result, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(t, err, tool)
	got := read(t, result)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(got.raw))
	require.NoError(t, err)
	require.NoError(t, a.outputs[tool].Validate(value), "%s %v: %s", tool, arguments, got.raw)
	return got
}

func read(t *testing.T, result *sdk.CallToolResult) answer {
	t.Helper()
	require.Len(t, result.Content, 1)
	a := answer{failed: result.IsError, raw: result.Content[0].(*sdk.TextContent).Text}
	decode(t, a.raw, &a.body)
	structured, err := json.Marshal(result.StructuredContent)
	require.NoError(t, err)
	require.JSONEq(t, string(structured), a.raw, "the two forms of an answer say the same")
	require.Equal(t, a.failed, a.body["error"] != nil)
	return a
}

// make calls a tool that must succeed.
func (a agent) make(t *testing.T, tool string, arguments object) object {
	t.Helper()
	got := a.call(t, tool, arguments)
	require.False(t, got.failed, got.raw)
	return got.data()
}

func decode(t *testing.T, raw string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	require.NoError(t, d.Decode(into), raw)
}

// post sends a raw message.
func post(t *testing.T, n *apptest.Tenant, body any, header ...string) apptest.Answer {
	t.Helper()
	return n.Do(t, http.MethodPost, mcp.Path, body, append([]string{"Accept", "application/json, text/event-stream"}, header...)...)
}

type operation struct {
	*openapi3.Operation
	method, path string
}

// operations returns the contract's operations by id.
func operations(t *testing.T) map[string]operation {
	t.Helper()
	doc, err := api.Contract()
	require.NoError(t, err)
	all := map[string]operation{}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			all[o.OperationID] = operation{o, method, path}
		}
	}
	return all
}

// everyTool returns the tools by name.
func (a agent) everyTool(t *testing.T) map[string]*sdk.Tool {
	t.Helper()
	all := map[string]*sdk.Tool{}
	for tool, err := range a.Tools(t.Context(), nil) {
		require.NoError(t, err)
		all[tool.Name] = tool
	}
	return all
}

func indented(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	require.NoError(t, e.Encode(v))
	return b.String()
}
