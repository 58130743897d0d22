package mcp

import (
	"context"
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The URIs of the resources name no host. Agents read them through this server.
const (
	contractURI = "feedback://contract/openapi.json"
	webhooksURI = "feedback://contract/webhooks.json"
)

// document is a resource with its text.
type document struct {
	*sdk.Resource
	text string
}

// documents returns the contract, and also its events alone, because the contract is long.
func (c *contract) documents() (all []document) {
	add := func(uri, name, title, description string, content any) {
		text := string(encoded(content))
		all = append(all, document{&sdk.Resource{
			URI: uri, Name: name, Title: title, Description: description, MIMEType: "application/json", Size: int64(len(text)),
		}, text})
	}
	add(contractURI, "openapi.json", "The API's contract",
		"OpenAPI 3.1: every operation of the REST interface with its limits and errors. Its names are camelCase.",
		c)
	add(webhooksURI, "webhooks.json", "The webhook catalogue",
		"Every event that webhooks can subscribe to: when it is sent, the schema of its payload, and an example.",
		c.catalogue())
	return all
}

func (d document) addTo(server *sdk.Server) {
	server.AddResource(d.Resource, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
			{URI: d.URI, MIMEType: d.MIMEType, Text: d.text},
		}}, nil
	})
}

// catalogue describes each event as the contract's section "webhooks" does. Payloads are the same
// as in REST, so they have the contract's names.
func (c *contract) catalogue() map[string]any {
	events := []any{}
	for _, name := range slices.Sorted(maps.Keys(c.Webhooks)) {
		sent := c.Webhooks[name].Post
		media := sent.RequestBody.Value.Content.Get("application/json")
		events = append(events, map[string]any{
			"event": name, "summary": sent.Summary, "description": sent.Description,
			"payload": copied(media.Schema, func(*openapi3.Schema) {}), "example": media.Example,
		})
	}
	return map[string]any{"events": events}
}
