package activities

import (
	"context"
	"time"

	"earshot/internal/backfill"
	"earshot/internal/publicid"
)

// The wire names of the activities.
const (
	ContinueBackfillName = "continue_backfill"
	CancelBackfillName   = "cancel_backfill"
)

// backfillTime is the approximate duration of one activity of a backfill. It keeps the progress in
// the web UI moving, and 100,000 addresses take only some dozens of steps in the run's history.
const backfillTime = 5 * time.Second

// Backfills continues searches for contacts in old activity.
type Backfills struct{ backfills *backfill.Service }

// NewBackfills makes the activities.
func NewBackfills(b *backfill.Service) *Backfills { return &Backfills{b} }

// BackfillParams names the backfill.
type BackfillParams struct {
	Backfill publicid.ContactBackfill `json:"backfill"`
}

// BackfillProgress is the progress of a backfill, in numbers only. The status is empty if the
// backfill no longer exists.
type BackfillProgress struct {
	Status    string `json:"status,omitempty"`
	Addresses int    `json:"addresses"`
	Left      int    `json:"left"`
	Matched   int    `json:"matched"`
	Created   int    `json:"created"`
	Existed   int    `json:"existed"`
	LeftOut   int    `json:"leftOut"`
	Invalid   int    `json:"invalid"`
}

// Running reports whether there is more to do.
func (p BackfillProgress) Running() bool { return p.Status == "running" }

// ContinueBackfill works page by page for about backfillTime, and rests after each page as the
// retention does. A retry doesn't repeat committed pages.
func (b *Backfills) ContinueBackfill(ctx context.Context, p BackfillParams) (BackfillProgress, error) {
	var progress BackfillProgress
	err := inPages(ctx, backfillTime, func() (more bool, err error) {
		now, err := b.backfills.Continue(ctx, p.Backfill)
		progress = BackfillProgress(now)
		return progress.Running(), err
	})
	return progress, err
}

// CancelBackfill ends a backfill whose run was canceled.
func (b *Backfills) CancelBackfill(ctx context.Context, p BackfillParams) (BackfillProgress, error) {
	if err := b.backfills.Cancel(ctx, p.Backfill); err != nil {
		return BackfillProgress{}, err
	}
	now, err := b.backfills.Continue(ctx, p.Backfill)
	return BackfillProgress(now), err
}
