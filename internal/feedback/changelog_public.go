package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/changelogentry"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
)

// PublicEntries lists the published entries of a public board's changelog, the latest first. If the
// board does not show its changelog, it returns problem.NotFound.
func (s *Service) PublicEntries(ctx context.Context, on *db.Board, q page.Query) (page.Page[*Entry], error) {
	if !on.Public || !on.ShowChangelog {
		return page.Page[*Entry]{}, problem.Missing("changelog")
	}
	var bad problem.Fields
	limit := q.Size(&bad, page.Standard, page.Max)
	list := page.ListOf("publicChangelog", on.ID)
	var last publicid.ChangelogEntry
	at, behind := page.ByTime.After(&bad, list, q, &last)
	if err := bad.Err(); err != nil {
		return page.Page[*Entry]{}, err
	}
	where := publishedOn(on.ID)
	if behind {
		where = append(where, changelogentry.Or(changelogentry.PublishedAtLT(at),
			changelogentry.And(changelogentry.PublishedAt(at), changelogentry.IDLT(last))))
	}
	order := page.Descending(changelogentry.Table, changelogentry.FieldPublishedAt, changelogentry.FieldID)
	rows, err := s.readEntries(ctx, order, limit+1, page.FirstRead, where...)
	if err != nil {
		return page.Page[*Entry]{}, errors.Wrap(err, "list the changelog")
	}
	place := func(e *listedEntry) []string {
		return []string{page.ByTime.Write(*e.PublishedAt), e.ID.String()}
	}
	cut, err := page.Filled(ctx, s.largeEntries(ctx, list, q.Memory, place), page.Cut(list, rows, limit, place))
	if err != nil {
		return page.Page[*Entry]{}, err
	}
	return s.wholeEntries(ctx, cut)
}

// PublicEntry loads a published entry of a public board by its slug.
func (s *Service) PublicEntry(ctx context.Context, on *db.Board, name string) (*Entry, error) {
	if !on.Public || !on.ShowChangelog || !slug.Valid(name) {
		return nil, problem.Missing("changelog entry")
	}
	client := s.store.Client()
	found, err := onlyEntry(ctx, client.ChangelogEntry.Query().Where(publishedOn(on.ID)...).Where(changelogentry.Slug(name)))
	if err != nil {
		return nil, err
	}
	e := &Entry{ChangelogEntry: found}
	return e, linkedTo(ctx, client.ChangelogLink, e)
}

func publishedOn(board publicid.Board) []predicate.ChangelogEntry {
	return []predicate.ChangelogEntry{changelogentry.BoardID(board), changelogentry.StateEQ(changelogentry.StatePublished)}
}

// PublicLinks loads the linked posts of the entries, without their texts. It returns only live
// posts of the board itself, because other boards may be private.
func (s *Service) PublicLinks(ctx context.Context, on *db.Board, entries []*Entry) (map[publicid.Post]*db.Post, error) {
	var ids []publicid.Post
	for _, e := range entries {
		ids = append(ids, e.PostIDs...)
	}
	found := make(map[publicid.Post]*db.Post, len(ids))
	if len(ids) == 0 || !on.Public {
		return found, nil
	}
	rows, err := s.store.Client().Post.Query().Where(post.BoardID(on.ID), post.IDIn(ids...), post.DeletedAtIsNil()).
		Select(withoutText...).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the linked posts")
	}
	for _, p := range rows {
		found[p.ID] = p
	}
	return found, nil
}
