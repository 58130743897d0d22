package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/temporal"

	"earshot/internal/failpoint"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/webhooks"
)

// The wire names of the activities.
const (
	ReplayName         = "insert_replay"
	CountFailedName    = "count_failed"
	ReplayFailedName   = "replay_failed"
	CancelRecoveryName = "cancel_recovery"
)

// Recoveries replays one delivery, or all failed deliveries of a webhook.
type Recoveries struct{ webhooks *webhooks.Service }

// NewRecoveries makes the activities.
func NewRecoveries(w *webhooks.Service) *Recoveries { return &Recoveries{w} }

// ReplayParams names the delivery to replay, as the operator entered it, and the id of the new one.
type ReplayParams struct {
	Delivery string            `json:"delivery"`
	As       publicid.Delivery `json:"as"`
}

// ReplayDelivery creates the replay unless it exists. If the delivery can't be replayed, the error
// is permanent.
func (r *Recoveries) ReplayDelivery(ctx context.Context, p ReplayParams) error {
	of, err := publicid.Parse[publicid.Delivery](p.Delivery)
	if err != nil {
		// The message doesn't repeat the operator's input, which may be anything.
		return applicationError(problem.New(problem.Validation, `The input is not the id of a delivery, which looks like "dlv_…".`))
	}
	err = r.webhooks.ReplayAs(ctx, of, p.As)
	if refused, ok := problem.As(err); ok {
		return applicationError(refused)
	}
	return err
}

// applicationError converts a problem into Temporal's error. The type is the problem's reason, or
// its code if there is no reason.
func applicationError(p *problem.Error) error {
	kind, _ := p.Details["reason"].(string)
	if kind == "" {
		kind = string(p.Code)
	}
	return temporal.NewNonRetryableApplicationError(p.Message, kind, nil)
}

// RecoverParams names the recovery.
type RecoverParams struct {
	Recovery publicid.Recovery `json:"recovery"`
}

// RecoverProgress is the progress of a recovery. The status is empty if the recovery was deleted
// with its webhook.
type RecoverProgress struct {
	Status        string    `json:"status"`
	StoppedReason string    `json:"stoppedReason,omitempty"`
	Since         time.Time `json:"since"`
	Until         time.Time `json:"until"`
	Total         int       `json:"total"`
	Replayed      int       `json:"replayed"`
}

// Running reports whether there is more to do.
func (p RecoverProgress) Running() bool { return p.Status == "running" }

// CountFailed counts the deliveries to replay, once per recovery.
func (r *Recoveries) CountFailed(ctx context.Context, p RecoverParams) (RecoverProgress, error) {
	progress, err := r.webhooks.CountRecovery(ctx, p.Recovery)
	return RecoverProgress(progress), err
}

// ReplayFailed replays the next page.
func (r *Recoveries) ReplayFailed(ctx context.Context, p RecoverParams) (RecoverProgress, error) {
	progress, err := r.webhooks.RecoverNext(ctx, p.Recovery)
	failpoint.Hit(failpoint.AfterRecoveryPage)
	return RecoverProgress(progress), err
}

// CancelRecovery stops a recovery whose run was canceled.
func (r *Recoveries) CancelRecovery(ctx context.Context, p RecoverParams) (RecoverProgress, error) {
	if err := r.webhooks.CancelRecovery(ctx, p.Recovery); err != nil {
		return RecoverProgress{}, err
	}
	// The recovery has ended, so this call counts nothing and returns the progress.
	return r.CountFailed(ctx, p)
}
