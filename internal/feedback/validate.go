package feedback

import (
	"encoding/json"

	"earshot/ent/db/post"
	"earshot/internal/problem"
)

// Limits of the specification and of docs/decisions that several resources share. Lengths count
// characters, as JSON Schema does, and not bytes.
const (
	maxTitle    = 200
	maxPostSlug = 80
	maxBodyText = 50_000
	// The size in bytes is the only limit of a rich-text document.
	maxBodyJSON = 256 << 10
)

// statuses parses the statuses of a filter.
func statuses(bad *problem.Fields, given []string) []post.Status {
	bad.Items("status", given, len(postStatuses))
	out := make([]post.Status, len(given))
	for i, v := range given {
		if out[i] = post.Status(v); post.StatusValidator(out[i]) != nil {
			bad.Add(problem.Item("status", i), "enum", "%s", statusWords)
		}
	}
	return out
}

// Body is a rich text: a JSON document of any shape and its plain text.
type Body struct {
	JSON json.RawMessage
	Text string
}

// check validates a body whose text has at least low characters.
func (b Body) check(bad *problem.Fields, low int) {
	bad.Text("body.text", b.Text, low, maxBodyText)
	if len(b.JSON) > maxBodyJSON {
		bad.Add("body.json", "maxBytes", "must have at most %d bytes, not %d", maxBodyJSON, len(b.JSON))
	}
}

// document returns the JSON to store. A null document is nil.
func (b Body) document() json.RawMessage {
	if string(b.JSON) == "null" {
		return nil
	}
	return b.JSON
}
