package dispatch

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"

	"earshot/internal/change"
	"earshot/internal/publicid"
	"earshot/workflows"
)

func attributesOf(group []change.PendingDelivery) temporal.SearchAttributes {
	var deliveries, webhooks, organizations []string
	for _, d := range group {
		deliveries = append(deliveries, d.ID.String())
		webhooks = appendNew(webhooks, d.Webhook.String())
		organizations = appendNew(organizations, d.Organization.String())
	}
	return temporal.NewSearchAttributes(
		workflows.DeliveryIDs.ValueSet(deliveries),
		workflows.WebhookIDs.ValueSet(webhooks),
		workflows.OrganizationIDs.ValueSet(organizations),
		workflows.EventType.ValueSet(group[0].EventType),
		workflows.DeliveryStatusKey.ValueSet(workflows.StatusAtStart),
	)
}

// summaryOf is the line in Temporal's web UI, for example "post.created → example.com".
func summaryOf(group []change.PendingDelivery) string {
	var hosts []string
	for _, d := range group {
		hosts = appendNew(hosts, d.Host)
	}
	// Temporal allows 200 bytes. Three hosts are enough.
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
	if slices.Contains(to, s) {
		return to
	}
	return append(to, s)
}

// fairnessOf returns the organization's priority. A group of several organizations has no fairness
// key, so that the backlog of one does not delay the others.
func fairnessOf(group []change.PendingDelivery) temporal.Priority {
	for _, d := range group {
		if d.Organization != group[0].Organization {
			return temporal.Priority{}
		}
	}
	return fairTo(group[0].Organization)
}

// fairTo makes a server with task-queue fairness share its queues between organizations. The run's
// activities and child workflows inherit the key. Other servers ignore it.
func fairTo(organization publicid.Organization) temporal.Priority {
	return temporal.Priority{FairnessKey: organization.String()}
}
