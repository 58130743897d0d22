package apptest

import (
	"bytes"
	"io"
	"net/http"
	"net/mail"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/go-faster/errors"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"

	"earshot/api"
)

// Contract returns a transport that checks every answer of the API against api/openapi.yaml and
// fails the test if they differ.
func Contract(t testing.TB) http.RoundTripper { return contractTransport{t} }

type contractTransport struct{ t testing.TB }

// contract is the document of the service.
type contract struct {
	router routers.Router
	events map[string]string // the references of their schemas, by type

	// schemas checks bodies by JSON Schema 2020-12. kin-openapi applies the rules of OpenAPI 3.0 to schemas with
	// references, and it compiles each schema again for each answer. A compiler isn't safe for concurrent use.
	schemas  *jsonschema.Compiler
	compiles sync.Mutex
}

var loadContract = sync.OnceValues(func() (*contract, error) {
	served, err := api.Contract() // reading it again would take 0.2 s of processor time
	if err != nil {
		return nil, errors.Wrap(err, "load the contract")
	}
	doc := *served
	doc.Servers = nil // accept any address
	// With version 3.1 the library compiles the schema of each header again for each answer.
	doc.OpenAPI = "3.0.3"
	c := &contract{events: map[string]string{}, schemas: jsonschema.NewCompiler()}
	if c.router, err = gorillamux.NewRouter(&doc); err != nil {
		return nil, errors.Wrap(err, "make the contract's router")
	}
	for event, item := range doc.Webhooks {
		c.events[event] = item.Post.RequestBody.Value.Content.Get("application/json").Schema.Ref
	}
	text, err := doc.MarshalJSON()
	if err != nil {
		return nil, errors.Wrap(err, "encode the contract")
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, errors.Wrap(err, "read the contract")
	}
	CloseEnums(tree)
	c.schemas.DefaultDraft(jsonschema.Draft2020)
	c.schemas.AssertFormat()
	// The library's own format allows only 254 characters, but the specification allows 320.
	c.schemas.RegisterFormat(&jsonschema.Format{Name: "email", Validate: isAddress})
	if err := c.schemas.AddResource("contract.json", tree); err != nil {
		return nil, errors.Wrap(err, "read the contract")
	}
	return c, nil
})

// schema returns the schema with a reference. The compiler keeps it.
func (c *contract) schema(ref string) (*jsonschema.Schema, error) {
	if ref == "" {
		return nil, errors.New("a schema of the contract has no name")
	}
	c.compiles.Lock()
	defer c.compiles.Unlock()
	return c.schemas.Compile("contract.json" + ref)
}

// CloseEnums makes the open enums of a contract accept only their listed values. Clients must accept
// others, but the service sends only listed ones.
func CloseEnums(node any) {
	switch node := node.(type) {
	case map[string]any:
		if known := node["x-extensible-enum"]; known != nil {
			node["enum"] = known
		}
		for _, child := range node {
			CloseEnums(child)
		}
	case []any:
		for _, child := range node {
			CloseEnums(child)
		}
	}
}

func isAddress(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	_, err := mail.ParseAddress(s)
	return err
}

// RoundTrip sends the request and checks the answer.
func (c contractTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasPrefix(r.URL.Path, "/v1/") || !isJSON(answer) {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, errors.Wrap(err, "read the answer")
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if r.URL.Path != "/v1/openapi.json" {
		assert.NoError(c.t, CheckAnswer(r, answer, body), "%s %s: %s", r.Method, r.URL.Path, body)
	}
	return answer, nil
}

func isJSON(r *http.Response) bool {
	return r.Request.Method != http.MethodHead && strings.HasPrefix(r.Header.Get("Content-Type"), "application/json")
}

// CheckAnswer returns an error if the answer to a request differs from the contract.
func CheckAnswer(r *http.Request, answer *http.Response, body []byte) error {
	c, err := loadContract()
	if err != nil {
		return err
	}
	if answer.Header.Get("X-Request-Id") == "" {
		return errors.New("the answer has no X-Request-Id")
	}
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		// A 404 or 405 for a route outside of the contract.
		return c.checkError(answer, body)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 answer.StatusCode,
		Header:                 answer.Header,
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: true},
	}
	if err := openapi3filter.ValidateResponse(r.Context(), input); err != nil {
		return err
	}
	declared := route.Operation.Responses.Status(answer.StatusCode).Value.Content.Get("application/json")
	return c.checkBody(declared.Schema.Ref, body)
}

func (c *contract) checkBody(ref string, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return errors.Wrap(err, "decode the answer")
	}
	schema, err := c.schema(ref)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// checkError checks an answer outside of the contract's routes.
func (c *contract) checkError(answer *http.Response, body []byte) error {
	if answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusMethodNotAllowed {
		return errors.Errorf("the contract doesn't know the route that answered %d", answer.StatusCode)
	}
	return c.checkBody("#/components/schemas/Error", body)
}
