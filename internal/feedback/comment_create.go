package feedback

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
)

// NewComment has the values of a new comment. A comment with a ParentID is a reply. If By names no
// contact, the author is the caller.
type NewComment struct {
	Body     Body
	ParentID *string
	By       contacts.Person
}

// wantedComment is a request for a comment. The row has the caller as its author, and no post yet.
type wantedComment struct {
	on publicid.Post
	by contacts.Person
	db.Comment
}

// CreateComment adds a comment or a reply to a post and records comment.created. If the post is
// merged, the comment goes to the target of the merge. Replies nest one level: a reply to a reply
// is problem.Validation.
func (s *Service) CreateComment(
	ctx context.Context, on publicid.Post, in NewComment, q change.Request[*db.Comment],
) (*db.Comment, error) {
	var bad problem.Fields
	in.Body.check(&bad, 1)
	in.By.Check(&bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	author, at := change.CallerOf(ctx).User, postgres.Now()
	hash := s.emailHash(author.Email)
	row := db.Comment{
		ID: publicid.NewComment(), OrganizationID: author.OrganizationID, BodyText: in.Body.Text, BodyJSON: in.Body.document(),
		AuthorUserID: &author.ID, EmailHash: &hash, CreatedAt: at, UpdatedAt: at,
	}
	if in.ParentID != nil {
		row.ParentID = new(publicid.Read[publicid.Comment](*in.ParentID))
	}
	return s.comments.Do(ctx, wantedComment{on, in.By, row}, q)
}

// comesAlone reports whether a comment gets a transaction of its own: a contact may have to be made,
// and many large bodies would not fit into memory.
func (w wantedComment) comesAlone() bool {
	return w.by.Named() || len(w.BodyText)+len(w.BodyJSON) > maxSharedBodyBytes
}

// createComments makes the comments of one or more callers. The parents are read after the lock of
// the posts, because a merge moves comments.
func (s *Service) createComments(ctx context.Context, c *change.Change, in []wantedComment) ([]change.Result[*db.Comment], error) {
	ids := make([]publicid.Post, len(in))
	for i, w := range in {
		ids[i] = w.on
	}
	posts, err := lockPlaces(ctx, c, ids)
	if err != nil {
		return nil, err
	}
	parents, err := parentsOf(ctx, c, in)
	if err != nil {
		return nil, err
	}
	out := make([]change.Result[*db.Comment], len(in))
	var rows []freshComment
	for i, w := range in {
		if out[i].Err = posts[i].err; out[i].Err != nil {
			continue
		}
		row := &w.Comment
		on, err := mayComment(posts[i].Place, false)
		if err == nil && row.ParentID != nil {
			err = mayReply(on, parents[*row.ParentID])
		}
		if err != nil {
			out[i].Err = err
			continue
		}
		if err := s.writtenBy(ctx, c, row, w.by); err != nil {
			return nil, err
		}
		row.PostID = on.at.ID
		rows, out[i].Out = append(rows, freshComment{on, row}), row
		out[i].Events = []change.Event{{Type: event.CommentCreated, At: row.CreatedAt, Payload: commentCreated(on.at.BoardID, row)}}
	}
	return out, insertComments(ctx, c, rows)
}

// freshComment is a comment to insert, on its post.
type freshComment struct {
	on CommentablePost
	*db.Comment
}

// insertComments inserts comments and counts them on their posts.
func insertComments(ctx context.Context, c *change.Change, comments []freshComment) error {
	if len(comments) == 0 {
		return nil
	}
	rows, counts := make([]*db.CommentCreate, len(comments)), tally{}
	for i, row := range comments {
		rows[i] = c.Comment.Create().
			SetID(row.ID).SetPostID(row.on.at.ID).SetNillableParentID(row.ParentID).SetBodyText(row.BodyText).
			SetNillableAuthorUserID(row.AuthorUserID).SetNillableContactID(row.ContactID).
			SetCreatedAt(row.CreatedAt).SetUpdatedAt(row.UpdatedAt)
		if row.EmailHash != nil {
			rows[i].SetEmailHash(*row.EmailHash)
		}
		if row.BodyJSON != nil {
			rows[i].SetBodyJSON(row.BodyJSON)
		}
		counts.add(PostCount{Post: row.on.at.ID, Comments: 1, At: &row.CreatedAt})
	}
	if _, err := postgres.InsertWithCommit(ctx, c.Comment.CreateBulk, rows); err != nil {
		return errors.Wrap(err, "insert the comments")
	}
	return counts.write(ctx, c)
}

// writtenBy sets the contact in by, if any, as the comment's author.
func (s *Service) writtenBy(ctx context.Context, c *change.Change, row *db.Comment, by contacts.Person) error {
	if !by.Named() {
		return nil
	}
	found, err := s.contacts.Keep(ctx, c, by)
	if err != nil {
		return err
	}
	author, err := guest(ctx, c, found)
	if err != nil {
		return err
	}
	row.AuthorUserID, row.ContactID, row.EmailHash = &author.ID, &found.ID, contactsHash(found)
	return nil
}

func commentCreated(on publicid.Board, c *db.Comment) event.Payload {
	return &event.CommentCreatedPayload{
		BoardHead: event.BoardHead{BoardID: on},
		Comment: event.Comment{
			ID: c.ID, PostID: c.PostID, ParentID: c.ParentID, AuthorUserID: *c.AuthorUserID,
			BodyText: c.BodyText, CreatedAt: c.CreatedAt,
		},
	}
}

// parentsOf returns the comments that are replied to, by id.
func parentsOf(ctx context.Context, c *change.Change, in []wantedComment) (map[publicid.Comment]*db.Comment, error) {
	var ids []publicid.Comment
	for _, w := range in {
		if w.ParentID != nil {
			ids = append(ids, *w.ParentID)
		}
	}
	if ids == nil {
		return nil, nil
	}
	rows, err := c.Comment.Query().Where(comment.IDIn(ids...)).Select(comment.FieldID, comment.FieldPostID, comment.FieldParentID).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "load the parent comments")
	}
	byID := make(map[publicid.Comment]*db.Comment, len(rows))
	for _, row := range rows {
		byID[row.ID] = row
	}
	return byID, nil
}
