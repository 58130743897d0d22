package feedback

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/ent/db/tag"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/wordlist"
)

const (
	maxTagName = 40
	// A board's tags are returned in one answer, which has about 150 KB with this many tags.
	maxBoardTags = 500
	// A neutral grey is the default colour.
	defaultTagColor = "#6b7280"
)

var colorPattern = regexp.MustCompile(`^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`)

// plainColor returns a colour as #rrggbb in lower case.
func plainColor(color string) string {
	c := strings.ToLower(color)
	if len(c) == len("#rgb") {
		c = string([]byte{'#', c[1], c[1], c[2], c[2], c[3], c[3]})
	}
	return c
}

// TagInput has the values of a new tag, or the changes to a tag. A nil field stays as it is.
type TagInput struct{ Name, Color *string }

func (in *TagInput) check() error {
	var bad problem.Fields
	if in.Name != nil {
		trimmed := strings.TrimSpace(*in.Name)
		in.Name = &trimmed
		bad.Shown("name", trimmed, 1, maxTagName)
	}
	if in.Color != nil && !colorPattern.MatchString(*in.Color) {
		bad.Add("color", "pattern", "must look like #6b7280")
	} else if in.Color != nil {
		plain := plainColor(*in.Color)
		in.Color = &plain
	}
	return bad.Err()
}

// nameKey returns the form in which tag names are compared: without case, and with look-alikes such as
// full-width letters replaced.
func nameKey(name string) string { return wordlist.Folded(name) }

func tagTaken() error {
	return problem.New(problem.Conflict, "The board has a tag of that name already.").With("field", "name")
}

// CreateTag makes a tag on a board. It returns problem.Conflict if the name is taken, ignoring case,
// or if the board already has maxBoardTags tags.
func (s *Service) CreateTag(
	ctx context.Context, on publicid.Board, in TagInput, q change.Request[*db.Tag],
) (*db.Tag, error) {
	if in.Name == nil {
		in.Name = new(string)
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	color := defaultTagColor
	if in.Color != nil {
		color = *in.Color
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Tag, error) {
		// The lock serializes new tags, so that the count is exact.
		if _, err := onlyBoard(ctx, c.Board.Query().Where(board.ID(on)).ForUpdate(postgres.NoKeyUpdate)); err != nil {
			return nil, err
		}
		id, at := publicid.NewTag(), postgres.Now()
		ok, err := postgres.Inserted(c.Tag.Create().
			SetID(id).SetBoardID(on).SetName(*in.Name).SetNameKey(nameKey(*in.Name)).SetColor(color).SetCreatedAt(at).SetUpdatedAt(at).
			OnConflict(sql.DoNothing()).Exec(ctx))
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, tagTaken()
		}
		if err := mustBeNewName(ctx, c, on, id, *in.Name); err != nil {
			return nil, err
		}
		if err := mustHaveRoomForTag(ctx, c, on); err != nil {
			return nil, err
		}
		c.Audit("createTag", id)
		return c.Tag.Get(ctx, id)
	})
}

// mustBeNewName compares a tag's name with those of the board's other tags. Rows of earlier releases
// have keys that ignored only case, so the unique index does not see all that look alike.
func mustBeNewName(ctx context.Context, c *change.Change, on publicid.Board, id publicid.Tag, name string) error {
	others, err := c.Tag.Query().Where(tag.BoardID(on), tag.IDNEQ(id)).Select(tag.FieldName).All(ctx)
	if err != nil {
		return errors.Wrap(err, "load the names of tags")
	}
	if slices.ContainsFunc(others, func(other *db.Tag) bool { return nameKey(other.Name) == nameKey(name) }) {
		return tagTaken()
	}
	return nil
}

// mustHaveRoomForTag counts the board's tags after the insert, so that a taken name is reported
// before the limit.
func mustHaveRoomForTag(ctx context.Context, c *change.Change, on publicid.Board) error {
	n, err := c.Tag.Query().Where(tag.BoardID(on)).Count(ctx)
	if err != nil {
		return errors.Wrap(err, "count tags")
	}
	if n > maxBoardTags {
		return problem.TagLimit.Problem().With("resource", "tag").With("limit", maxBoardTags).With("current", n-1)
	}
	return nil
}

// Tags lists a board's tags, oldest first. It returns all of them unless the request asks for a
// page.
func (s *Service) Tags(ctx context.Context, on publicid.Board, q page.Query) (page.Page[*db.Tag], error) {
	var bad problem.Fields
	limit := q.Whole(&bad, maxBoardTags)
	list := page.ListOf("tags", on)
	last := page.After[publicid.Tag](&bad, list, q)
	if err := bad.Err(); err != nil {
		return page.Page[*db.Tag]{}, err
	}
	if err := mustHaveBoard(ctx, s.store.Client().Board, on); err != nil {
		return page.Page[*db.Tag]{}, err
	}
	query := s.store.Client().Tag.Query().Where(tag.BoardID(on)).Order(db.Asc(tag.FieldID)).Limit(limit + 1)
	if last != nil {
		query.Where(tag.IDGT(*last))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return page.Page[*db.Tag]{}, errors.Wrap(err, "list tags")
	}
	return page.Cut(list, rows, limit, page.ByID(func(t *db.Tag) string { return t.ID.String() })), nil
}

// UpdateTag changes a tag's name or colour.
func (s *Service) UpdateTag(
	ctx context.Context, on publicid.Board, id publicid.Tag, in TagInput, q change.Request[*db.Tag],
) (*db.Tag, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Tag, error) {
		old, err := lockTag(ctx, c, q, on, id)
		if err != nil {
			return nil, err
		}
		update := c.Tag.UpdateOne(old)
		if in.Name != nil && *in.Name != old.Name {
			if err := mustBeNewName(ctx, c, on, id, *in.Name); err != nil {
				return nil, err
			}
			update.SetName(*in.Name).SetNameKey(nameKey(*in.Name))
		}
		// Older rows may have upper case, which is the same colour.
		change.Differs(in.Color, plainColor(old.Color), update.SetColor)
		if change.Unchanged(update.Mutation()) {
			return old, nil
		}
		c.Audit("updateTag", id)
		changed, err := update.SetUpdatedAt(postgres.Now()).Save(ctx)
		if sqlgraph.IsUniqueConstraintError(err) {
			return nil, tagTaken()
		}
		return changed, err
	})
}

// DeleteTag removes a tag from its board and from all posts.
func (s *Service) DeleteTag(ctx context.Context, on publicid.Board, id publicid.Tag, q change.Request[*db.Tag]) error {
	_, err := change.Run(ctx, s.changes, q, func(c *change.Change) (*db.Tag, error) {
		old, err := lockTag(ctx, c, q, on, id)
		if err != nil {
			return nil, err
		}
		if err := c.Tag.DeleteOne(old).Exec(ctx); err != nil {
			return nil, errors.Wrap(err, "delete the tag")
		}
		c.Audit("deleteTag", id)
		return old, nil
	})
	return err
}

// lockTag loads and locks a tag, and checks it against the request's precondition.
func lockTag(
	ctx context.Context, c *change.Change, q change.Request[*db.Tag], on publicid.Board, id publicid.Tag,
) (*db.Tag, error) {
	found, err := c.Tag.Query().Where(tag.ID(id), tag.BoardID(on)).ForUpdate().Only(ctx)
	if db.IsNotFound(err) {
		return nil, problem.Missing("tag")
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the tag")
	}
	return found, q.CheckIfMatch(c, found)
}

// mustHaveTags returns the ids without repetitions, oldest tag first. It returns problem.NotFound
// unless all of them are tags of the board. It prevents their deletion until the transaction ends.
func mustHaveTags(ctx context.Context, c *change.Change, on publicid.Board, ids []publicid.Tag) ([]publicid.Tag, error) {
	kept, err := keepTags(ctx, c, ids)
	if err != nil {
		return nil, err
	}
	return kept.of(on, ids)
}

// keptTags has the boards of tags that are kept until the transaction ends.
type keptTags map[publicid.Tag]publicid.Board

// keepTags keeps the tags that exist. It skips tags that other transactions hold, unless the change waits.
func keepTags(ctx context.Context, c *change.Change, ids []publicid.Tag) (keptTags, error) {
	distinct := distinctTags(ids)
	if len(distinct) == 0 {
		return nil, nil
	}
	lock := postgres.KeyShare
	if !c.Waits {
		lock = postgres.KeyShareSkipHeld
	}
	found, err := c.Tag.Query().Where(tag.IDIn(distinct...)).Order(db.Asc(tag.FieldID)).
		ForShare(lock).Select(tag.FieldID, tag.FieldBoardID).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look up the tags")
	}
	kept := make(keptTags, len(found))
	for _, t := range found {
		kept[t.ID] = t.BoardID
	}
	return kept, nil
}

// of returns the ids without repetitions, oldest tag first, if all of them are tags of the board.
func (k keptTags) of(on publicid.Board, ids []publicid.Tag) ([]publicid.Tag, error) {
	for _, id := range ids {
		if k[id] != on {
			return nil, problem.MissingIn("tagIds", "tag on this board")
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return distinctTags(ids), nil
}

// distinctTags returns the ids without repetitions, oldest tag first.
func distinctTags(ids []publicid.Tag) []publicid.Tag {
	distinct := slices.Clone(ids)
	slices.SortFunc(distinct, func(a, b publicid.Tag) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(distinct)
}
