package feedback

import (
	"context"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
)

// EntryPatch has the changes to a changelog entry. A field that is nil or left out stays as it is.
type EntryPatch struct {
	Title, Slug *string
	Body        *Body
	// A null Version or PublishedAt clears the field.
	Version     nullable.Nullable[string]
	PublishedAt nullable.Nullable[time.Time]
}

func (in *EntryPatch) check() error {
	var bad problem.Fields
	if in.Title != nil {
		trimmed := strings.TrimSpace(*in.Title)
		in.Title = &trimmed
		bad.Shown("title", trimmed, 1, maxTitle)
	}
	if in.Slug != nil {
		slug.Check(&bad, *in.Slug, maxPostSlug)
	}
	change.Given(in.Version, func(v string) { bad.Shown("version", v, 1, maxVersion) })
	if in.Body != nil {
		in.Body.check(&bad, 0)
	}
	change.Given(in.PublishedAt, func(at time.Time) {
		bad.Moment("publishedAt", &at)
		in.PublishedAt.Set(*postgres.AtPrecision(&at))
	})
	return bad.Err()
}

// UpdateEntry changes the fields in the patch. PublishedAt decides the entry's state. Null makes it a
// draft and cancels a scheduled publication. A time in the past publishes it and records
// changelog.published, unless it was published already. A time in the future schedules it.
func (s *Service) UpdateEntry(
	ctx context.Context, id publicid.ChangelogEntry, in EntryPatch, q change.Request[*Entry],
) (*Entry, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*Entry, error) {
		old, err := lockEntry(ctx, c, id)
		if err != nil {
			return nil, err
		}
		changed := &Entry{ChangelogEntry: old}
		if err := linkedTo(ctx, c.ChangelogLink, changed); err != nil {
			return nil, err
		}
		if err := q.CheckIfMatch(c, changed); err != nil {
			return nil, err
		}
		at := postgres.Now()
		update := c.ChangelogEntry.UpdateOne(old)
		patchEntry(update, old, in, at)
		if change.Unchanged(update.Mutation()) {
			return changed, nil
		}
		c.Audit("updateChangelogEntry", id)
		changed.ChangelogEntry, err = update.SetUpdatedAt(at).Save(ctx)
		if sqlgraph.IsUniqueConstraintError(err) {
			return nil, slugTaken()
		}
		if err != nil {
			return nil, errors.Wrap(err, "update the changelog entry")
		}
		return changed, announce(ctx, c, old.State, old.PublishedAt, changed.ChangelogEntry)
	})
}

// patchEntry sets the fields that differ in the update.
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
	// The state may change although the time is the same, because the time has passed meanwhile.
	if state := stateAt(publishedAt, at); state != old.State {
		update.SetState(state)
	}
}
