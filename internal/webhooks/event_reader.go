package webhooks

import (
	"earshot/ent/db"
	"earshot/ent/db/event"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
)

// listedEvent is an event.
type listedEvent struct {
	db.Event
	page.Extent
}

// eventPages reads pages of events.
var eventPages = page.NewReader[listedEvent, predicate.Event](event.Table, event.Columns, []string{event.FieldPayload})
