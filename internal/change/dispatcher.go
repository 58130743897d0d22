package change

import (
	"go.opentelemetry.io/otel/trace"

	"earshot/internal/jobs"
	"earshot/internal/publicid"
)

// Dispatcher starts the work that follows a committed change. Its methods do not block on the
// network and return no errors. Work that fails to start stays pending in the database, where the
// sweep finds it.
type Dispatcher interface {
	// Deliver starts deliveries.
	Deliver(deliveries []PendingDelivery)
	// Queue sends requests about other jobs.
	Queue(requests []jobs.Request)
}

// PendingDelivery names a delivery that is under way, with the data that operators see.
type PendingDelivery struct {
	ID           publicid.Delivery
	Webhook      publicid.Webhook
	Organization publicid.Organization
	EventType    string
	// Host is the receiver's host. The path and the query are left out, because they may contain
	// tokens.
	Host string
	// Trace is the span that caused the delivery, or nil.
	Trace *trace.SpanContext
}
