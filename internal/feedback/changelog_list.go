package feedback

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db/changelogentry"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// Entries lists a board's changelog, newest first, including drafts. With a Sync it lists the
// entries in the order of their changes instead.
func (s *Service) Entries(ctx context.Context, on publicid.Board, q page.Query, sync page.Sync) (page.Page[*Entry], error) {
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	if sync.Check(&bad, true); sync.Asked() {
		return s.changedEntries(ctx, &bad, on, q, limit, sync)
	}
	list := page.ListOf("changelog", on)
	last := page.After[publicid.ChangelogEntry](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*Entry]{}, err
	}
	where := []predicate.ChangelogEntry{changelogentry.BoardID(on)}
	if last != nil {
		where = append(where, changelogentry.IDLT(*last))
	}
	rows, err := s.readEntries(ctx, page.Descending(changelogentry.Table, changelogentry.FieldID), limit+1, page.FirstRead, where...)
	if err != nil {
		return page.Page[*Entry]{}, errors.Wrap(err, "list the changelog")
	}
	if len(rows) == 0 {
		// Only an empty list needs this check, because entries imply their board.
		return page.Page[*Entry]{Items: []*Entry{}}, mustHaveBoard(ctx, s.store.Client().Board, on)
	}
	place := page.ByID(func(e *listedEntry) string { return e.ID.String() })
	cut, err := page.Filled(ctx, s.largeEntries(ctx, list, q.Memory, place), page.Cut(list, rows, limit, place))
	if err != nil {
		return page.Page[*Entry]{}, err
	}
	return s.wholeEntries(ctx, cut)
}

func (s *Service) readEntries(ctx context.Context, order string, limit, most int, where ...predicate.ChangelogEntry) ([]*listedEntry, error) {
	return entryPages.Read(ctx, s.store, page.Selection[predicate.ChangelogEntry]{Where: where, Order: order, Limit: limit, Most: most})
}

func (s *Service) largeEntries(
	ctx context.Context, list string, memory *page.Reservation, place func(*listedEntry) []string,
) page.LargeRows[publicid.ChangelogEntry, *listedEntry] {
	return page.LargeRows[publicid.ChangelogEntry, *listedEntry]{
		List: list, Memory: memory, Place: place, ID: func(e *listedEntry) publicid.ChangelogEntry { return e.ID },
		Load: func(ids ...publicid.ChangelogEntry) ([]*listedEntry, error) {
			return s.readEntries(ctx, page.Descending(changelogentry.Table, changelogentry.FieldID), len(ids), page.All, changelogentry.IDIn(ids...))
		},
		Size: func(e *listedEntry) int { return page.JSONSize(e.BodyText) + page.JSONSize(e.BodyJSON) },
	}
}

// wholeEntries adds the linked posts to entries.
func (s *Service) wholeEntries(ctx context.Context, cut page.Page[*listedEntry]) (page.Page[*Entry], error) {
	out := page.Each(cut, func(e *listedEntry) *Entry { return &Entry{ChangelogEntry: &e.ChangelogEntry} })
	return out, linkedTo(ctx, s.store.Client().ChangelogLink, out.Items...)
}

// changedEntries is Entries in the order of changes.
func (s *Service) changedEntries(
	ctx context.Context, bad *problem.Fields, on publicid.Board, q page.Query, limit int, sync page.Sync,
) (page.Page[*Entry], error) {
	list := page.ListOf("changedEntries", on, sync)
	at := q.SyncPlace(bad, list)
	if err := bad.Err(); err != nil {
		return page.Page[*Entry]{}, err
	}
	raw := on.UUID()
	found, err := page.Changed[publicid.ChangelogEntry, *listedEntry, predicate.ChangelogEntry]{
		LargeRows: s.largeEntries(ctx, list, q.Memory, nil),
		Store:     s.store, Deletions: page.DeletedEntries, Of: &raw,
		In:      func(e *listedEntry) int64 { return e.ChangedIn },
		Deleted: func(id uuid.UUID) string { return publicid.Of[publicid.ChangelogEntry](id).String() },
		Rows: func(limit int, within predicate.ChangelogEntry) ([]*listedEntry, error) {
			return s.readEntries(ctx, page.ByChange(changelogentry.Table), limit, page.FirstRead,
				changelogentry.BoardID(on), changelogentry.UpdatedAtGTE(sync.Since()), within)
		},
	}.Page(ctx, at, limit, sync)
	if err != nil {
		return page.Page[*Entry]{}, err
	}
	if len(found.Items)+len(found.Deleted) == 0 {
		if err := mustHaveBoard(ctx, s.store.Client().Board, on); err != nil {
			return page.Page[*Entry]{}, err
		}
	}
	return s.wholeEntries(ctx, found)
}
