package activities

import (
	"context"
	"time"

	"earshot/internal/failpoint"
	"earshot/internal/feedback"
	"earshot/internal/publicid"
)

// PublishName is the wire name of the activity.
const PublishName = "publish_entry"

// Changelog publishes entries.
type Changelog struct{ feedback *feedback.Service }

// NewChangelog makes the activity.
func NewChangelog(f *feedback.Service) *Changelog { return &Changelog{f} }

// PublishParams names the entry.
type PublishParams struct {
	Entry publicid.ChangelogEntry `json:"entry"`
}

// PublishResult holds the time at which the entry is due, or nil if there is nothing left to
// publish.
type PublishResult struct {
	Due *time.Time `json:"due"`
}

// PublishEntry publishes the entry if it is scheduled and due. Repeating it changes nothing.
func (c *Changelog) PublishEntry(ctx context.Context, p PublishParams) (PublishResult, error) {
	due, err := c.feedback.PublishEntry(ctx, p.Entry)
	if due == nil && err == nil {
		failpoint.Hit(failpoint.AfterPublication)
	}
	return PublishResult{Due: due}, err
}
