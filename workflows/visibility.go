package workflows

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
)

// StatusAtStart is the DeliveryStatus of a run of deliver_webhooks that begins.
const StatusAtStart = string(pending)

// The search attributes. temporal-dev.yaml lists the same, and a test holds one
// against the other. SQL visibility has room for three keyword lists, so a
// group is of one event type and that can be a plain keyword.
var (
	DeliveryIDs     = temporal.NewSearchAttributeKeyKeywordList("DeliveryID")
	WebhookIDs      = temporal.NewSearchAttributeKeyKeywordList("WebhookID")
	OrganizationIDs = temporal.NewSearchAttributeKeyKeywordList("OrganizationID")
	EventType       = temporal.NewSearchAttributeKeyKeyword("EventType")
	// DeliveryStatusKey is pending until every delivery of the run has ended, then
	// failed where one of them failed for good.
	DeliveryStatusKey = temporal.NewSearchAttributeKeyKeyword("DeliveryStatus")
)

// SearchAttributes are what must be registered in the namespace before a
// delivery can start.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	all := map[string]enumspb.IndexedValueType{}
	for _, key := range []temporal.SearchAttributeKey{DeliveryIDs, WebhookIDs, OrganizationIDs, EventType, DeliveryStatusKey} {
		all[key.GetName()] = key.GetValueType()
	}
	return all
}
