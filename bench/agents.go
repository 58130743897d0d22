package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/go-faster/errors"

	"earshot/mcp"
)

// identifyByTool identifies a contact as the host of an agent does: with a tool call without a
// session. It decodes the answer.
func (t tenant) identifyByTool(ctx context.Context, externalID string, into *identified) error {
	message, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
			"name": "identify_contact", "arguments": map[string]any{
				"external_user_id": externalID, "name": "Bench", "email": externalID + "@example.com",
			},
		},
	})
	if err != nil {
		return errors.Wrap(err, "encode the message")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.base+mcp.Path, bytes.NewReader(message))
	if err != nil {
		return errors.Wrap(err, "make the request")
	}
	r.Header = http.Header{
		"Authorization": {"Bearer " + t.key}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-06-18"},
	}
	answer, err := t.http.Do(r)
	if err != nil {
		return errors.Wrap(err, "call identify_contact")
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return errors.Wrap(err, "read the answer")
	}
	var called struct {
		Result struct {
			IsError           bool
			StructuredContent struct{ Data struct{ ID string } }
		}
	}
	if err := json.Unmarshal(raw, &called); err != nil || called.Result.StructuredContent.Data.ID == "" {
		return errors.Errorf("call identify_contact: %s: %s", answer.Status, raw)
	}
	return into.note(externalID, called.Result.StructuredContent.Data.ID)
}
