package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/temporal"

	"earshot/internal/failpoint"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
	"earshot/internal/webhooks"
)

// Recoveries sends again what was sent before: one delivery, or all that failed at
// a webhook.
type Recoveries struct {
	webhooks *webhooks.Service
	store    *store.Store
}

// NewRecoveries makes the activities.
func NewRecoveries(w *webhooks.Service, s *store.Store) *Recoveries { return &Recoveries{w, s} }

// ReplayParams name the delivery to replay, in the words of who asks, and the one
// that is to be made.
type ReplayParams struct {
	Delivery string            `json:"delivery"`
	As       publicid.Delivery `json:"as"`
}

// ReplayDelivery makes the replay, unless it is there. What can't be replayed is
// refused for good.
func (r *Recoveries) ReplayDelivery(ctx context.Context, p ReplayParams) error {
	of, err := publicid.Parse[publicid.Delivery](p.Delivery)
	if err != nil {
		// Without what was typed, which may be anything.
		return applicationError(problem.New(problem.Validation, `The input is not the id of a delivery, which looks like "dlv_…".`))
	}
	err = r.webhooks.ReplayAs(ctx, of, p.As)
	if refused, ok := problem.As(err); ok {
		return applicationError(refused)
	}
	return err
}

// applicationError is a problem as Temporal tells of it. Its type is the reason, or the code
// where there is none.
func applicationError(p *problem.Error) error {
	kind, _ := p.Details["reason"].(string)
	if kind == "" {
		kind = string(p.Code)
	}
	return temporal.NewNonRetryableApplicationError(p.Message, kind, nil)
}

// RecoverParams name the recovery.
type RecoverParams struct {
	Recovery publicid.Recovery `json:"recovery"`
}

// RecoverProgress tells how far a recovery is. Its status is empty when it is gone
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

// CountFailed counts what is to be replayed, once.
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
	if err := r.store.CancelRecovery(ctx, p.Recovery); err != nil {
		return RecoverProgress{}, err
	}
	// It has ended, so this counts nothing and tells how it is.
	return r.CountFailed(ctx, p)
}
