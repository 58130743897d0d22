package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"earshot/internal/publicid"
)

// deliveryStatus is one of those in the API, or gone: deleted with its webhook.
type deliveryStatus string

const (
	pending   deliveryStatus = "pending"
	succeeded deliveryStatus = "succeeded"
	failed    deliveryStatus = "failed"
	gone      deliveryStatus = "gone"
)

// Status is what the status query answers: the deliveries of the run, in its order.
type Status struct {
	Deliveries []DeliveryStatus `json:"deliveries"`
}

// DeliveryStatus is how far a delivery is.
type DeliveryStatus struct {
	Delivery publicid.Delivery `json:"delivery"`
	Webhook  publicid.Webhook  `json:"webhook"`
	Status   string            `json:"status"`
	// Attempt is the one that is next or under way; of a delivery that has ended, the
	// last one.
	Attempt int `json:"attempt"`
	// Answer to the last attempt that was made: the receiver's status, or the error.
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

// show tells operators how far the run is: in Markdown on its page, and by the
// search attribute that they filter by.
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

// details are a list and no table, for which the web UI's panel is too narrow.
func (d *delivering) details() string {
	lines := make([]string, len(d.all))
	for i, p := range d.all {
		lines[i] = fmt.Sprintf("- **%s**, %s", p.status, p.when())
		if p.answer != "" {
			lines[i] += "; last answer: " + p.answer
		}
		lines[i] += fmt.Sprintf(" (%s to %s)", p.ID, p.Webhook)
	}
	return fmt.Sprintf("%d succeeded, %d pending, %d failed\n\n", d.count(succeeded), d.count(pending), d.count(failed)) +
		strings.Join(lines, "\n")
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
