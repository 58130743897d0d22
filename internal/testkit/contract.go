package testkit

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/go-faster/errors"
	"github.com/stretchr/testify/assert"
)

// Contract is a transport that holds every answer of the API against
// api/openapi.yaml and fails the test when they differ.
func Contract(t testing.TB) http.RoundTripper { return contractTransport{t} }

type contractTransport struct{ t testing.TB }

type contract struct {
	doc    *openapi3.T
	router routers.Router
}

var loadContract = sync.OnceValues(func() (*contract, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.Join(Root(), "api", "openapi.yaml"))
	if err != nil {
		return nil, errors.Wrap(err, "load the contract")
	}
	doc.Servers = nil // any address will do
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, errors.Wrap(err, "make the contract's router")
	}
	return &contract{doc, router}, nil
})

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
		assert.NoError(c.t, checkAnswer(r, answer, body), "%s %s: %s", r.Method, r.URL.Path, body)
	}
	return answer, nil
}

func isJSON(r *http.Response) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/json")
}

func checkAnswer(r *http.Request, answer *http.Response, body []byte) error {
	c, err := loadContract()
	if err != nil {
		return err
	}
	if answer.Header.Get("X-Request-Id") == "" {
		return errors.New("the answer has no X-Request-Id")
	}
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		// 404 and 405 of a route that the contract doesn't have.
		return c.checkError(answer, body)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 answer.StatusCode,
		Header:                 answer.Header,
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	input.SetBodyBytes(body)
	return openapi3filter.ValidateResponse(r.Context(), input)
}

func (c *contract) checkError(answer *http.Response, body []byte) error {
	if answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusMethodNotAllowed {
		return errors.Errorf("the contract doesn't know the route that answered %d", answer.StatusCode)
	}
	var value any
	if err := decodeJSON(body, &value); err != nil {
		return err
	}
	if err := c.doc.Components.Schemas["Error"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		return fmt.Errorf("error envelope: %w", err)
	}
	return nil
}
