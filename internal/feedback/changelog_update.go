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
	"earshot/internal/change"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
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
		bad.Text("title", trimmed, 1, maxTitle)
	}
	if in.Slug != nil {
		slug.Check(&bad, *in.Slug, maxPostSlug)
	}
	change.Given(in.Version, func(v string) { bad.Text("version", v, 1, maxVersion) })
	if in.Body != nil {
		in.Body.check(&bad, 0)
	}
	change.Given(in.PublishedAt, func(at time.Time) {
		bad.Moment("publishedAt", &at)
		in.PublishedAt.Set(*store.AtPrecision(&at))
	})
	return bad.Err()
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
	err := s.changes.Run(ctx, func(c *change.Change) error {
		old, err := lockEntry(ctx, c, id)
		if err != nil {
			return err
		}
		changed.ChangelogEntry, changed.PostIDs = old, nil
		if err := linkedTo(ctx, c.ChangelogLink, changed); err != nil {
			return err
		}
		if err := change.Judge(ctx, changed); err != nil {
			return err
		}
		at := store.Now()
		update := c.ChangelogEntry.UpdateOne(old)
		patchEntry(update, old, in, at)
		if change.Unchanged(update.Mutation()) {
			return nil
		}
		c.Audit("updateChangelogEntry", id)
		changed.ChangelogEntry, err = update.SetUpdatedAt(at).Save(ctx)
		if sqlgraph.IsUniqueConstraintError(err) {
			return slugTaken()
		}
		if err != nil {
			return errors.Wrap(err, "update the changelog entry")
		}
		return announce(ctx, c, old.State, old.PublishedAt, changed.ChangelogEntry)
	})
	return changed, err
}

// patchEntry puts the members that differ into the update.
func patchEntry(update *db.ChangelogEntryUpdateOne, old *db.ChangelogEntry, in EntryPatch, at time.Time) {
	change.Differs(in.Title, old.Title, update.SetTitle)
	change.Differs(in.Slug, old.Slug, update.SetSlug)
	if version := change.Value(in.Version); in.Version.IsSpecified() && !change.Same(version, old.Version) {
		change.OrEmpty(version, update.SetVersion, update.ClearVersion)
	}
	if in.Body != nil {
		change.Differs(&in.Body.Text, old.BodyText, update.SetBodyText)
		patchDocument(*in.Body, old.BodyJSON, update.SetBodyJSON, update.ClearBodyJSON)
	}
	if !in.PublishedAt.IsSpecified() {
		return
	}
	publishedAt := change.Value(in.PublishedAt)
	if !change.SameTime(publishedAt, old.PublishedAt) {
		change.OrEmpty(publishedAt, update.SetPublishedAt, update.ClearPublishedAt)
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
	err = s.changes.RunForService(ctx, found.OrganizationID, func(ctx context.Context, c *change.Change) error {
		old, err := lockEntry(ctx, c, id)
		if due = nil; problem.Is(err, problem.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		at := store.Now()
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
