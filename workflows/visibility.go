package workflows

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
)

// StatusAtStart is the DeliveryStatus of a new run of deliver_webhooks.
const StatusAtStart = string(pending)

// Search attributes. temporal-dev.yaml contains the same list, and a test compares the two. SQL
// visibility has room for three keyword lists. A group has only one event type, so EventType can be
// a plain keyword.
var (
	DeliveryIDs     = temporal.NewSearchAttributeKeyKeywordList("DeliveryID")
	WebhookIDs      = temporal.NewSearchAttributeKeyKeywordList("WebhookID")
	OrganizationIDs = temporal.NewSearchAttributeKeyKeywordList("OrganizationID")
	EventType       = temporal.NewSearchAttributeKeyKeyword("EventType")
	// DeliveryStatusKey is pending until every delivery of the run has ended. Then it is failed if
	// one of them failed for good.
	DeliveryStatusKey = temporal.NewSearchAttributeKeyKeyword("DeliveryStatus")
)

// SearchAttributes returns the attributes that must be registered in the namespace before a
// delivery can start.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	all := map[string]enumspb.IndexedValueType{}
	for _, key := range []temporal.SearchAttributeKey{DeliveryIDs, WebhookIDs, OrganizationIDs, EventType, DeliveryStatusKey} {
		all[key.GetName()] = key.GetValueType()
	}
	return all
}
