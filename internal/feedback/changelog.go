package feedback

import (
	"context"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/changelogentry"
	"earshot/ent/db/changeloglink"
	"earshot/ent/db/post"
	"earshot/internal/change"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
)

const (
	maxVersion = 40
	// More than a reader looks through under one announcement.
	maxLinkedPosts = 100
)

// Entry is a changelog entry with its linked posts, in the caller's order.
type Entry struct {
	*db.ChangelogEntry
	PostIDs []publicid.Post
}

// NewEntry has the values of a new changelog entry. A nil slug is derived from the title.
// UpdateEntry documents PublishedAt.
type NewEntry struct {
	Title       string
	Slug        *string
	Version     *string
	Body        Body
	PublishedAt *time.Time
}

// CreateEntry adds an entry to a board's changelog. It returns problem.Conflict if the requested
// slug is taken.
func (s *Service) CreateEntry(
	ctx context.Context, on publicid.Board, in NewEntry, q change.Request[*Entry],
) (*Entry, error) {
	in.Title = strings.TrimSpace(in.Title)
	var bad problem.Fields
	bad.Shown("title", in.Title, 1, maxTitle)
	if in.Slug != nil {
		slug.Check(&bad, *in.Slug, maxPostSlug)
	}
	if in.Version != nil {
		bad.Shown("version", *in.Version, 1, maxVersion)
	}
	in.Body.check(&bad, 0)
	bad.Moment("publishedAt", in.PublishedAt)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*Entry, error) {
		if err := keepBoard(ctx, c, on); err != nil {
			return nil, err
		}
		at := postgres.Now()
		row := &db.ChangelogEntry{
			ID: publicid.NewChangelogEntry(), OrganizationID: c.Caller.Organization.ID, BoardID: on,
			Title: in.Title, Version: in.Version, BodyText: in.Body.Text, BodyJSON: in.Body.document(),
			PublishedAt: postgres.AtPrecision(in.PublishedAt), CreatedAt: at, UpdatedAt: at,
		}
		row.State = stateAt(row.PublishedAt, at)
		if err := insertEntry(ctx, c, row, in.Slug); err != nil {
			return nil, err
		}
		c.Audit("createChangelogEntry", row.ID)
		return &Entry{ChangelogEntry: row}, announce(ctx, c, changelogentry.StateDraft, nil, row)
	})
}

// insertEntry inserts the entry under the requested slug, or under a free one, and sets e.Slug.
func insertEntry(ctx context.Context, c *change.Change, e *db.ChangelogEntry, wanted *string) error {
	insert := func(name string) (bool, error) {
		e.Slug = name
		row := c.ChangelogEntry.Create().
			SetID(e.ID).SetBoardID(e.BoardID).SetTitle(e.Title).SetSlug(name).SetNillableVersion(e.Version).
			SetBodyText(e.BodyText).SetNillablePublishedAt(e.PublishedAt).SetState(e.State).
			SetCreatedAt(e.CreatedAt).SetUpdatedAt(e.UpdatedAt)
		if e.BodyJSON != nil {
			row.SetBodyJSON(e.BodyJSON)
		}
		return postgres.Inserted(row.OnConflict(sql.DoNothing()).Exec(ctx))
	}
	taken := func(name string) (bool, error) {
		return postgres.Exists(ctx, c.ChangelogEntry.Query().Where(changelogentry.BoardID(e.BoardID), changelogentry.Slug(name)))
	}
	return withSlug(wanted, slug.From(e.Title, "entry", maxPostSlug), maxPostSlug, taken, insert)
}

// stateAt returns an entry's state at a time, given its publication time.
func stateAt(publishedAt *time.Time, at time.Time) changelogentry.State {
	switch {
	case publishedAt == nil:
		return changelogentry.StateDraft
	case publishedAt.After(at):
		return changelogentry.StateScheduled
	default:
		return changelogentry.StatePublished
	}
}

// announce records changelog.published and an update for the changelog's followers if the entry was
// published just now. It also notifies the scheduler if the publication time was set, moved or
// removed.
func announce(ctx context.Context, c *change.Change, before changelogentry.State, due *time.Time, e *db.ChangelogEntry) error {
	wasDue, isDue := before == changelogentry.StateScheduled, e.State == changelogentry.StateScheduled
	if (wasDue || isDue) && (wasDue != isDue || !due.Equal(*e.PublishedAt)) {
		c.After(PublishRun(e.ID, e.OrganizationID))
	}
	if before == changelogentry.StatePublished || e.State != changelogentry.StatePublished {
		return nil
	}
	if err := c.EntryPublished(ctx, e.ID); err != nil {
		return err
	}
	return c.Record(event.ChangelogPublished, &event.ChangelogPublishedPayload{
		BoardHead: event.BoardHead{BoardID: e.BoardID},
		Entry:     event.Entry{ID: e.ID, Title: e.Title, Slug: e.Slug, PublishedAt: *e.PublishedAt},
	})
}

// Entry loads one changelog entry.
func (s *Service) Entry(ctx context.Context, id publicid.ChangelogEntry) (*Entry, error) {
	client := s.store.Client()
	found, err := onlyEntry(ctx, client.ChangelogEntry.Query().Where(changelogentry.ID(id)))
	if err != nil {
		return nil, err
	}
	e := &Entry{ChangelogEntry: found}
	return e, linkedTo(ctx, client.ChangelogLink, e)
}

func onlyEntry(ctx context.Context, query *db.ChangelogEntryQuery) (*db.ChangelogEntry, error) {
	found, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("changelog entry")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the changelog entry")
	}
	return found, nil
}

// linkedTo sets the linked posts of the entries.
func linkedTo(ctx context.Context, client *db.ChangelogLinkClient, entries ...*Entry) error {
	if len(entries) == 0 {
		return nil
	}
	ids := make([]publicid.ChangelogEntry, len(entries))
	byID := make(map[publicid.ChangelogEntry]*Entry, len(entries))
	for i, e := range entries {
		ids[i], byID[e.ID] = e.ID, e
	}
	links, err := client.Query().Where(changeloglink.EntryIDIn(ids...)).Order(db.Asc(changeloglink.FieldPosition)).All(ctx)
	if err != nil {
		return errors.Wrap(err, "load the linked posts")
	}
	for _, l := range links {
		byID[l.EntryID].PostIDs = append(byID[l.EntryID].PostIDs, l.PostID)
	}
	return nil
}

// LinkPosts replaces an entry's linked posts. A missing post is problem.NotFound.
func (s *Service) LinkPosts(
	ctx context.Context, id publicid.ChangelogEntry, postIDs []string, q change.Request[*Entry],
) (*Entry, error) {
	wanted, err := linkedPosts(postIDs)
	if err != nil {
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
		if slices.Equal(wanted, changed.PostIDs) {
			return changed, nil
		}
		c.Audit("replaceLinkedPosts", id)
		if err := keepPosts(ctx, c, wanted); err != nil {
			return nil, err
		}
		if err := link(ctx, c, id, wanted); err != nil {
			return nil, err
		}
		changed.PostIDs = wanted
		if changed.ChangelogEntry, err = c.ChangelogEntry.UpdateOne(old).SetUpdatedAt(postgres.Now()).Save(ctx); err != nil {
			return nil, errors.Wrap(err, "update the changelog entry")
		}
		return changed, nil
	})
}

// linkedPosts parses the ids and removes repetitions. It keeps the order.
func linkedPosts(given []string) ([]publicid.Post, error) {
	var bad problem.Fields
	if len(given) > maxLinkedPosts {
		bad.Add("postIds", "maxItems", "must have at most %d items, not %d", maxLinkedPosts, len(given))
		return nil, bad.Err()
	}
	var ids []publicid.Post
	seen := map[publicid.Post]bool{}
	for _, text := range given {
		id := publicid.Read[publicid.Post](text)
		if !seen[id] {
			ids = append(ids, id)
		}
		seen[id] = true
	}
	return ids, bad.Err()
}

func lockEntry(ctx context.Context, c *change.Change, id publicid.ChangelogEntry) (*db.ChangelogEntry, error) {
	return onlyEntry(ctx, c.ChangelogEntry.Query().Where(changelogentry.ID(id)).ForUpdate())
}

// keepPosts returns problem.NotFound unless all posts are live. It locks them until the transaction
// ends, with a lock that only blocks deletions.
func keepPosts(ctx context.Context, c *change.Change, ids []publicid.Post) error {
	if len(ids) == 0 {
		return nil
	}
	found, err := c.Post.Query().Where(post.IDIn(ids...), post.DeletedAtIsNil()).
		Order(db.Asc(post.FieldID)).ForShare(postgres.KeyShare).Select(post.FieldID).All(ctx)
	if err != nil {
		return errors.Wrap(err, "look up the posts")
	}
	if len(found) != len(ids) {
		return problem.MissingIn("postIds", "post")
	}
	return nil
}

func link(ctx context.Context, c *change.Change, id publicid.ChangelogEntry, posts []publicid.Post) error {
	if _, err := c.ChangelogLink.Delete().Where(changeloglink.EntryID(id)).Exec(ctx); err != nil {
		return errors.Wrap(err, "take the linked posts off")
	}
	rows := make([]*db.ChangelogLinkCreate, len(posts))
	for i, p := range posts {
		rows[i] = c.ChangelogLink.Create().SetEntryID(id).SetPostID(p).SetPosition(i)
	}
	if err := c.ChangelogLink.CreateBulk(rows...).Exec(ctx); err != nil {
		return errors.Wrap(err, "link the posts")
	}
	return nil
}

// DeleteEntry removes an entry and cancels its scheduled publication.
func (s *Service) DeleteEntry(ctx context.Context, id publicid.ChangelogEntry, q change.Request[*Entry]) error {
	_, err := change.Run(ctx, s.changes, q, func(c *change.Change) (*Entry, error) {
		old, err := lockEntry(ctx, c, id)
		if err != nil {
			return nil, err
		}
		gone := &Entry{ChangelogEntry: old}
		if err := q.CheckIfMatchOf(c, func() (*Entry, error) { return gone, linkedTo(ctx, c.ChangelogLink, gone) }); err != nil {
			return nil, err
		}
		if old.State == changelogentry.StateScheduled {
			c.After(PublishRun(id, old.OrganizationID))
		}
		c.Audit("deleteChangelogEntry", id)
		if err := c.ChangelogEntry.DeleteOne(old).Exec(ctx); err != nil {
			return nil, errors.Wrap(err, "delete the changelog entry")
		}
		return gone, nil
	})
	return err
}
