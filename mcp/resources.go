package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The names of the resources belong to nobody's host: agents read them here.
const (
	contractURI = "feedback://contract/openapi.json"
	webhooksURI = "feedback://contract/webhooks.json"
)

// addResources offers the contract and, because that is long, the events alone.
func (s *Surface) addResources(server *sdk.Server) {
	add := func(uri, name, title, description string, document any) {
		text, err := json.Marshal(document)
		if err != nil {
			panic(err) // it was just read from JSON
		}
		server.AddResource(&sdk.Resource{
			URI: uri, Name: name, Title: title, Description: description, MIMEType: "application/json",
			Size: int64(len(text)),
		}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
				{URI: uri, MIMEType: "application/json", Text: string(text)},
			}}, nil
		})
	}
	add(contractURI, "openapi.json", "The API's contract",
		"OpenAPI 3.1: every operation of the REST interface with its limits and errors. Its names are camelCase.",
		json.RawMessage(s.api.Contract()))
	add(webhooksURI, "webhooks.json", "The webhook catalogue",
		"Every event that webhooks can subscribe to: when it is sent, the schema of its payload, and an example.",
		s.catalogue())
}

// catalogue tells of each event what the contract's section "webhooks" does. The
// payloads are REST's, in its own names.
func (s *Surface) catalogue() object {
	events := []object{}
	webhooks := at(s.contract.root, "webhooks")
	for _, name := range slices.Sorted(maps.Keys(webhooks)) {
		sent := at(webhooks, name, "post")
		media := at(sent, "requestBody", "content", "application/json")
		events = append(events, object{
			"event": name, "summary": sent["summary"], "description": sent["description"],
			"payload": s.contract.inlined(media["schema"]), "example": media["example"],
		})
	}
	return object{"events": events}
}

// inlined is a schema without references, in the contract's own names.
func (c *contract) inlined(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, value := range c.target(v) {
			out[key] = c.inlined(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = c.inlined(item)
		}
		return out
	default:
		return v
	}
}
