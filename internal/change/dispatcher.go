package change

import (
	"go.opentelemetry.io/otel/trace"

	"earshot/internal/publicid"
)

// Dispatcher starts the work that follows a committed change. Its methods do not block on the
// network and return no errors. Work that fails to start stays pending in the database, where the
// sweep finds it.
type Dispatcher interface {
	// Deliver starts deliveries.
	Deliver(deliveries []PendingDelivery)
	// PublishWhenDue schedules the publication of changelog entries.
	PublishWhenDue(entries []ScheduledEntry)
	// RunRecoveries starts recoveries.
	RunRecoveries(recoveries []RunningRecovery)
	// RunSubjectRequests starts exports and erasures.
	RunSubjectRequests(requests []RunningSubjectRequest)
	// RunBackfills starts searches for contacts in old activity.
	RunBackfills(backfills []RunningBackfill)
	// EndFailureStreaks reports to the workflows of the webhooks' failure streaks that the streaks
	// are over.
	EndFailureStreaks(webhooks []publicid.Webhook)
	// ConfirmInteractions mails the links of interactions and waits for their confirmation.
	ConfirmInteractions(interactions []PendingInteraction)
	// EndInteractions reports to the interactions' workflows that they were confirmed.
	EndInteractions(interactions []PendingInteraction)
	// NotifySubscribers starts the e-mails to end-users about updates of the organizations.
	NotifySubscribers(of []publicid.Organization)
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

// ScheduledEntry names an entry whose publication time was set, moved or removed. The worker reads
// the row.
type ScheduledEntry struct {
	Entry        publicid.ChangelogEntry
	Organization publicid.Organization
}

// RunningSubjectRequest names an export or an erasure to start. The worker reads the row.
type RunningSubjectRequest struct {
	Request      publicid.SubjectRequest
	Organization publicid.Organization
}

// RunningBackfill names a search for contacts in old activity to start. The worker reads the row.
type RunningBackfill struct {
	Backfill     publicid.ContactBackfill
	Organization publicid.Organization
}

// RunningRecovery names a recovery to start. The worker reads the row.
type RunningRecovery struct {
	Recovery     publicid.Recovery
	Webhook      publicid.Webhook
	Organization publicid.Organization
}

// PendingInteraction names an end-user's action that needs a confirmation. The worker reads the
// row.
type PendingInteraction struct {
	Interaction  publicid.Interaction
	Organization publicid.Organization
}
