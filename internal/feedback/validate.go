package feedback

import (
	"encoding/json"

	"earshot/ent/db/post"
	"earshot/internal/problem"
)

// The limits of the specification and of docs/decisions that several nouns
// share. Lengths count characters, as JSON Schema does, not bytes.
const (
	maxTitle    = 200
	maxPostSlug = 80
	maxBodyText = 50_000
	// Bytes of a rich-text document: it has no other limit.
	maxBodyJSON = 256 << 10
)

// statuses are those that a list is filtered by.
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

// Body is a rich text: the document of any shape and its plain form.
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

// size is that of both, in bytes.
func (b Body) size() int { return len(b.JSON) + len(b.Text) }

// document is the JSON to store: null and nothing are the same.
func (b Body) document() json.RawMessage {
	if string(b.JSON) == "null" {
		return nil
	}
	return b.JSON
}
