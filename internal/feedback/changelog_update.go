package feedback

import (
	"context"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
	"earshot/ent/db/changelogentry"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// EntryPatch is what to change of a changelog entry; a member that is nil or left out
// stays as it is.
type EntryPatch struct {
	Title, Slug *string
	Body        *Body
	// Version and PublishedAt set to null are emptied.
	Version     nullable.Nullable[string]
	PublishedAt nullable.Nullable[time.Time]
}

func (in *EntryPatch) check() error {
	var bad problem.Fields
	if in.Title != nil {
		trimmed := strings.TrimSpace(*in.Title)
		in.Title = &trimmed
		text(&bad, "title", trimmed, 1, maxTitle)
	}
	if in.Slug != nil {
		slugText(&bad, *in.Slug, maxPostSlug)
	}
	given(in.Version, func(v string) { text(&bad, "version", v, 1, maxVersion) })
	if in.Body != nil {
		in.Body.check(&bad, 0)
	}
	given(in.PublishedAt, func(at time.Time) {
		moment(&bad, "publishedAt", &at)
		in.PublishedAt.Set(*atPrecision(&at))
	})
	return bad.Err()
}

// moment refuses what has no place in a calendar of four-digit years, which is
// what a timestamp in JSON is written in.
func moment(bad *problem.Fields, field string, at *time.Time) {
	if at != nil && (at.UTC().Year() < 1 || at.UTC().Year() > 9999) {
		bad.Add(field, "format", "must lie between the years 1 and 9999")
	}
}

// atPrecision is a moment as Postgres keeps it.
func atPrecision(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	kept := at.UTC().Truncate(time.Microsecond)
	return &kept
}

// UpdateEntry changes what the patch holds and nothing else. PublishedAt decides
// what the entry is, whatever it was: without one it is a draft, and a publication
// that was scheduled doesn't happen; with a moment that is past it is published,
// which records changelog.published if it wasn't; with one to come it is
// scheduled.
func (s *Service) UpdateEntry(ctx context.Context, id publicid.ChangelogEntry, in EntryPatch) (*Entry, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	changed := &Entry{}
	err := s.change(ctx, func(c *change) error {
		old, err := c.lockEntry(ctx, id)
		if err != nil {
			return err
		}
		changed.ChangelogEntry, changed.PostIDs = old, nil
		if err := linkedTo(ctx, c.ChangelogLink, changed); err != nil {
			return err
		}
		at := now()
		update := c.ChangelogEntry.UpdateOne(old)
		patchEntry(update, old, in, at)
		if unchanged(update.Mutation()) {
			return nil
		}
		changed.ChangelogEntry, err = update.SetUpdatedAt(at).Save(ctx)
		if sqlgraph.IsUniqueConstraintError(err) {
			return slugTaken()
		}
		if err != nil {
			return errors.Wrap(err, "update the changelog entry")
		}
		return c.announce(ctx, old.State, old.PublishedAt, changed.ChangelogEntry)
	})
	return changed, err
}

// patchEntry puts the members that differ into the update.
func patchEntry(update *db.ChangelogEntryUpdateOne, old *db.ChangelogEntry, in EntryPatch, at time.Time) {
	differs(in.Title, old.Title, update.SetTitle)
	differs(in.Slug, old.Slug, update.SetSlug)
	if version := value(in.Version); in.Version.IsSpecified() && !same(version, old.Version) {
		orEmpty(version, update.SetVersion, update.ClearVersion)
	}
	if in.Body != nil {
		differs(&in.Body.Text, old.BodyText, update.SetBodyText)
		patchDocument(*in.Body, old.BodyJSON, update.SetBodyJSON, update.ClearBodyJSON)
	}
	if !in.PublishedAt.IsSpecified() {
		return
	}
	publishedAt := value(in.PublishedAt)
	if !sameTime(publishedAt, old.PublishedAt) {
		orEmpty(publishedAt, update.SetPublishedAt, update.ClearPublishedAt)
	}
	// Also where the moment is the same and has come meanwhile.
	if state := stateAt(publishedAt, at); state != old.State {
		update.SetState(state)
	}
}

// PublishEntry publishes an entry that is scheduled and due, and records
// changelog.published. It returns when it is due otherwise, or nil where there is
// nothing to wait for: it was published, made a draft, or deleted. It acts for the
// service, not for a caller, and whatever the billing state: what was promised
// happens.
func (s *Service) PublishEntry(ctx context.Context, id publicid.ChangelogEntry) (due *time.Time, err error) {
	ctx = store.System(ctx, "a schedule belongs to the service")
	found, err := s.store.Client().ChangelogEntry.Query().Where(changelogentry.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the changelog entry")
	}
	err = s.forService(ctx, found.OrganizationID, func(ctx context.Context, c *change) error {
		old, err := c.lockEntry(ctx, id)
		if due = nil; problem.Is(err, problem.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		at := now()
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
		return c.announce(ctx, changelogentry.StateDraft, nil, published)
	})
	return due, err
}
