package workflows

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"earshot/activities"
	"earshot/internal/feedback"
)

// Schedule queues changelog entries whose publication was set, moved or taken
// away, and returns at once.
func (s *Starter) Schedule(entries []feedback.Schedule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.entries)+len(entries) > maxWaiting {
		s.log.Warn("too many changelog entries wait for their schedule; the sweep will publish these", "entries", len(entries))
		return
	}
	if s.entries = append(s.entries, entries...); !s.scheduling && len(s.entries) > 0 {
		s.scheduling = true
		go s.scheduleAll()
	}
}

func (s *Starter) scheduleAll() {
	for {
		s.mu.Lock()
		if len(s.entries) == 0 {
			s.scheduling = false
			s.idle.Broadcast()
			s.mu.Unlock()
			return
		}
		next := s.entries[0]
		s.entries = s.entries[1:]
		s.mu.Unlock()
		if !s.schedule(next) {
			s.pause(startPause)
			s.mu.Lock()
			select {
			case <-s.quit:
			default:
				s.entries = append(s.entries, next)
			}
			s.mu.Unlock()
		}
	}
}

// schedule reports whether the entry is off the queue's hands. A run that is open
// looks at the entry again, a closed one is followed by another.
func (s *Starter) schedule(e feedback.Schedule) bool {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c, err := s.temporal.Client(ctx)
	if err != nil {
		s.log.Warn("Temporal is away; changelog entries wait", "error", err)
		return false
	}
	_, err = c.SignalWithStartWorkflow(ctx, e.Entry.String(), RescheduledSignal, nil, client.StartWorkflowOptions{
		TaskQueue:             MainQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(organizationIDs.ValueSet([]string{e.Organization.String()})),
		StaticSummary:         "publishes a changelog entry when it is due",
	}, PublishChangelogName, activities.PublishParams{Entry: e.Entry})
	if err == nil {
		return true
	}
	again := unreachable(err)
	s.log.Warn("schedule a changelog entry", "entry", e.Entry, "error", err, "again", again)
	return !again
}
