package feedback

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/changelogentry"
	"earshot/internal/change"
	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// PublishRun has the run of a scheduled entry look at the row, because its publication time was set,
// moved or removed.
func PublishRun(id publicid.ChangelogEntry, of publicid.Organization) jobs.Request {
	return jobs.Request{
		How: jobs.Wake, Workflow: "publish_changelog", Signal: "rescheduled", ID: id.String(), Argument: "entry",
		Summary: "publishes a changelog entry when it is due", Organization: of,
	}
}

// PublishEntry publishes a scheduled entry that is due and records changelog.published. If the
// entry is due later, it returns that time. It returns nil if there is nothing left to do: the
// entry was published, made a draft, or deleted. PublishEntry acts for the service and ignores the
// billing state, so that a scheduled publication always happens.
func (s *Service) PublishEntry(ctx context.Context, id publicid.ChangelogEntry) (due *time.Time, err error) {
	ctx, err = postgres.InOrganizationOf(ctx, s.store, id)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := s.store.Client().ChangelogEntry.Query().Where(changelogentry.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the changelog entry")
	}
	err = s.changes.RunForService(ctx, found.OrganizationID, func(ctx context.Context, c *change.Change) error {
		old, err := lockEntry(ctx, c, id)
		if due = nil; problem.Is(err, problem.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		at := postgres.Now()
		switch {
		case old.State != changelogentry.StateScheduled:
			return nil
		case old.PublishedAt.After(at):
			due = old.PublishedAt
			return nil
		}
		published, err := c.ChangelogEntry.UpdateOne(old).SetState(changelogentry.StatePublished).SetUpdatedAt(at).Save(ctx)
		if err != nil {
			return errors.Wrap(err, "publish the changelog entry")
		}
		return announce(ctx, c, changelogentry.StateDraft, nil, published)
	})
	return due, err
}

// SweepEntries finds scheduled entries whose publication is overdue.
func (s *Service) SweepEntries() jobs.Sweep {
	return jobs.Sweep{Ask: jobs.NoRuns, Rows: s.overdueEntries}
}

const overdueEntriesSQL = `
SELECT id, organization_id, published_at FROM changelog_entries
WHERE state = 'scheduled' AND published_at <= now() - make_interval(secs => $1) AND (published_at, id) > ($2, $3::uuid)
ORDER BY published_at, id LIMIT $4`

func (s *Service) overdueEntries(ctx context.Context, grace time.Duration, after jobs.Overdue, limit int) ([]jobs.Overdue, error) {
	return change.Overdue(ctx, s.store.Across("find overdue changelog entries"), overdueEntriesSQL, grace, after, limit, PublishRun)
}
