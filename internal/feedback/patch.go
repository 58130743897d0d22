package feedback

import (
	"encoding/json"

	"earshot/internal/change"
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
