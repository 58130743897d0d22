package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/internal/publicid"
)

// deliveryStatus is a status of the API, or gone: the delivery was deleted with its webhook.
type deliveryStatus string

const (
	pending   deliveryStatus = "pending"
	succeeded deliveryStatus = "succeeded"
	failed    deliveryStatus = "failed"
	gone      deliveryStatus = "gone"
)

// deliveryStatuses lists all statuses, in the order in which operators see their counts.
var deliveryStatuses = []deliveryStatus{succeeded, pending, failed, gone}

// Status is the answer to the status query: the deliveries of the run, in its order.
type Status struct {
	Deliveries []DeliveryStatus `json:"deliveries"`
}

// DeliveryStatus is the progress of one delivery.
type DeliveryStatus struct {
	Delivery publicid.Delivery `json:"delivery"`
	Webhook  publicid.Webhook  `json:"webhook"`
	Status   string            `json:"status"`
	// Attempt is the number of the next attempt, or of the one under way. After the delivery has
	// ended, it is the number of the last attempt.
	Attempt int `json:"attempt"`
	// Answer is the result of the last attempt: the receiver's status, or the error.
	Answer string `json:"answer,omitempty"`
	// DueAt is nil while the attempt is under way, and when the delivery has ended.
	DueAt *time.Time `json:"dueAt,omitempty"`
}

func (d *delivering) query() (Status, error) { return Status{Deliveries: statusOf(d.all)}, nil }

func statusOf(of []*progress) []DeliveryStatus {
	all := make([]DeliveryStatus, len(of))
	for i, p := range of {
		all[i] = DeliveryStatus{Delivery: p.ID, Webhook: p.Webhook, Status: string(p.status), Attempt: p.Attempt, Answer: p.answer}
		if p.waits() {
			all[i].DueAt = &p.at
		}
	}
	return all
}

// show publishes the progress for operators: Markdown on the run's page, and the search attribute
// that they filter by.
func (d *delivering) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, d.details())
	status := pending
	switch {
	case d.count(pending) > 0:
	case d.count(failed) > 0:
		status = failed
	case d.count(succeeded) > 0:
		status = succeeded
	default:
		status = gone
	}
	if d.shown == "" || d.shown == string(status) {
		return
	}
	d.shown = string(status)
	if err := workflow.UpsertTypedSearchAttributes(ctx, DeliveryStatusKey.ValueSet(d.shown)); err != nil {
		workflow.GetLogger(ctx).Warn("show the status", "error", err)
	}
}

// details returns a list, because the web UI's panel is too narrow for a table.
func (d *delivering) details() string {
	lines := make([]string, len(d.all))
	for i, p := range d.all {
		lines[i] = fmt.Sprintf("- **%s**, %s", p.status, p.when())
		if p.answer != "" {
			lines[i] += "; last answer: " + p.answer
		}
		lines[i] += fmt.Sprintf(" (%s to %s)", p.ID, p.Webhook)
	}
	counts := make([]string, len(deliveryStatuses))
	for i, status := range deliveryStatuses {
		counts[i] = fmt.Sprintf("%d %s", d.count(status), status)
	}
	return strings.Join(counts, ", ") + "\n\n" + strings.Join(lines, "\n")
}

func (p *progress) when() string {
	switch {
	case p.waits():
		return fmt.Sprintf("attempt %d at %s", p.Attempt, p.at.UTC().Format("2006-01-02 15:04:05 UTC"))
	case p.flying:
		return fmt.Sprintf("attempt %d is under way", p.Attempt)
	case p.status == pending:
		return "is being given up"
	default:
		return fmt.Sprintf("at attempt %d", p.Attempt)
	}
}
