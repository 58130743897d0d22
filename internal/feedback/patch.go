package feedback

import (
	"encoding/json"

	"earshot/internal/change"
)

// patchDocument puts a body's document into an update where it says something
// else than before.
func patchDocument[U any](body Body, old json.RawMessage, set func(json.RawMessage) U, empty func() U) {
	switch document := body.document(); {
	case change.SameJSON(document, old):
	case document == nil:
		empty()
	default:
		set(document)
	}
}
