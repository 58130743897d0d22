package workflows

import (
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"earshot/internal/feedback"
)

// The search attributes. temporal-dev.yaml lists the same, and a test holds one
// against the other. SQL visibility has room for three keyword lists, so a
// group is of one event type and that can be a plain keyword.
var (
	deliveryIDs     = temporal.NewSearchAttributeKeyKeywordList("DeliveryID")
	webhookIDs      = temporal.NewSearchAttributeKeyKeywordList("WebhookID")
	organizationIDs = temporal.NewSearchAttributeKeyKeywordList("OrganizationID")
	eventType       = temporal.NewSearchAttributeKeyKeyword("EventType")
	// statusAttribute is pending until every delivery of the run has ended, then
	// failed where one of them failed for good.
	statusAttribute = temporal.NewSearchAttributeKeyKeyword("DeliveryStatus")
)

// SearchAttributes are what must be registered in the namespace before a
// delivery can start.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	all := map[string]enumspb.IndexedValueType{}
	for _, key := range []temporal.SearchAttributeKey{deliveryIDs, webhookIDs, organizationIDs, eventType, statusAttribute} {
		all[key.GetName()] = key.GetValueType()
	}
	return all
}

func attributesOf(group []feedback.Dispatch) temporal.SearchAttributes {
	var deliveries, webhooks, organizations []string
	for _, d := range group {
		deliveries = append(deliveries, d.ID.String())
		webhooks = appendNew(webhooks, d.Webhook.String())
		organizations = appendNew(organizations, d.Organization.String())
	}
	return temporal.NewSearchAttributes(
		deliveryIDs.ValueSet(deliveries),
		webhookIDs.ValueSet(webhooks),
		organizationIDs.ValueSet(organizations),
		eventType.ValueSet(group[0].EventType),
		statusAttribute.ValueSet(string(pending)),
	)
}

// summaryOf is the line that the web UI shows: post.created → example.com.
func summaryOf(group []feedback.Dispatch) string {
	var hosts []string
	for _, d := range group {
		hosts = appendNew(hosts, d.Host)
	}
	// Temporal allows 200 bytes; three hosts say enough.
	if len(hosts) > 3 {
		hosts = append(hosts[:3], "…")
	}
	summary := group[0].EventType + " → " + strings.Join(hosts, ", ")
	if len(summary) > 180 {
		summary = strings.ToValidUTF8(summary[:180], "") + "…"
	}
	return summary
}

func appendNew(to []string, s string) []string {
	for _, have := range to {
		if have == s {
			return to
		}
	}
	return append(to, s)
}
