package feedback

import (
	"encoding/json"

	"earshot/internal/change"
	"earshot/internal/problem"
)

// patchDocument sets a body's document in an update if it differs from the old one.
func patchDocument[U any](body Body, old json.RawMessage, set func(json.RawMessage) U, empty func() U) {
	switch document := body.document(); {
	case change.SameJSON(document, old):
	case document == nil:
		empty()
	default:
		set(document)
	}
}

// Limits of the specification and of docs/decisions that several resources share. Lengths count
// characters, as JSON Schema does, and not bytes.
const (
	maxTitle    = 200
	maxPostSlug = 80
	maxBodyText = 50_000
	// The size in bytes is the only limit of a rich-text document.
	maxBodyJSON = 256 << 10
)

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
