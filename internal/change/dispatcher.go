package change

import (
	"go.opentelemetry.io/otel/trace"

	"earshot/internal/publicid"
)

// Dispatcher starts what follows a change that is committed. It doesn't block on
// the network and has no errors: what it fails to start stays pending in the
// database, where the sweep finds it.
type Dispatcher interface {
	// Deliver starts the delivery of rows.
	Deliver(deliveries []PendingDelivery)
	// PublishWhenDue sees to it that changelog entries are published when they are due.
	PublishWhenDue(entries []ScheduledEntry)
	// RunRecoveries runs recoveries.
	RunRecoveries(recoveries []RunningRecovery)
	// RunSubjectRequests does exports and erasures.
	RunSubjectRequests(requests []RunningSubjectRequest)
	// RunBackfills does searches for contacts in old activity.
	RunBackfills(backfills []RunningBackfill)
	// EndFailureStreaks tells whoever follows the webhooks' streaks that they are over.
	EndFailureStreaks(webhooks []publicid.Webhook)
	// ConfirmInteractions has the links to interactions be mailed, and waits for their use.
	ConfirmInteractions(interactions []PendingInteraction)
	// EndInteractions tells whoever waits for interactions that these were confirmed.
	EndInteractions(interactions []PendingInteraction)
	// NotifySubscribers has end-users be told by e-mail of what happened in organizations.
	NotifySubscribers(of []publicid.Organization)
}

// PendingDelivery is what an operator wants to see of a delivery that is under way.
type PendingDelivery struct {
	ID           publicid.Delivery
	Webhook      publicid.Webhook
	Organization publicid.Organization
	EventType    string
	// Host is the receiver's, without path or query, which may hold tokens.
	Host string
	// Trace is the span that caused it; nil where there is none.
	Trace *trace.SpanContext
}

// ScheduledEntry says that the moment of an entry's publication was set, moved or taken
// away. Whoever waits for it reads the entry.
type ScheduledEntry struct {
	Entry        publicid.ChangelogEntry
	Organization publicid.Organization
}

// RunningSubjectRequest names an export or an erasure that is to be done. Whoever does it reads
// the row.
type RunningSubjectRequest struct {
	Request      publicid.SubjectRequest
	Organization publicid.Organization
}

// RunningBackfill names a search for contacts in old activity that is to be done. Whoever does it reads
// the row.
type RunningBackfill struct {
	Backfill     publicid.ContactBackfill
	Organization publicid.Organization
}

// RunningRecovery names a recovery that is to run. Whoever runs it reads the row.
type RunningRecovery struct {
	Recovery     publicid.Recovery
	Webhook      publicid.Webhook
	Organization publicid.Organization
}

// PendingInteraction names what an end-user has to confirm. Whoever follows it reads the row.
type PendingInteraction struct {
	Interaction  publicid.Interaction
	Organization publicid.Organization
}
