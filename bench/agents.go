package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/go-faster/errors"

	"earshot/mcp"
)

// identifyByTool is identify as an agent's host sends it: a message without a
// session, whose answer is decoded.
func (s *stack) identifyByTool(ctx context.Context, i int) error {
	message, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": map[string]any{
			"name": "identify_contact", "arguments": map[string]any{
				"external_user_id": fmt.Sprintf("bench-%d", i%known), "name": "Bench",
				"email": fmt.Sprintf("bench-%d@example.com", i%known),
			},
		},
	})
	if err != nil {
		return errors.Wrap(err, "encode the message")
	}
	target := os.Getenv("EARSHOT_BASE_URL") + mcp.Path
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(message)) //nolint:gosec // who measures names the service
	if err != nil {
		return errors.Wrap(err, "make the request")
	}
	r.Header = http.Header{
		"Authorization": {"Bearer " + s.key}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-06-18"},
	}
	answer, err := s.http.Do(r) //nolint:gosec // see above
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
	return nil
}
