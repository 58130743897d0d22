package privacy

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	entevent "earshot/ent/db/event"
	"earshot/ent/db/post"
	"earshot/ent/db/subjectrecord"
	"earshot/ent/db/subjectrequest"
	"earshot/internal/change"
	eventrow "earshot/internal/event"
	"earshot/internal/failpoint"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// blankPosts blanks the title and text of the noted posts, including deleted ones. It also replaces
// the slug, which was derived from the title. If the text stays, no posts are noted and the step does
// nothing.
func (t *step) blankPosts(ctx context.Context) error {
	rows, err := t.notedPage(ctx, subjectrecord.KindPost)
	if err != nil {
		return err
	}
	ids := items[publicid.Post](rows)
	found, err := t.Post.Query().Where(post.IDIn(ids...)).Order(db.Asc(post.FieldID)).ForUpdate(postgres.NoKeyUpdate).
		Select(post.FieldID).All(ctx)
	if err != nil {
		return errors.Wrap(err, "lock the posts")
	}
	for _, p := range found {
		err := t.Post.UpdateOneID(p.ID).SetTitle(eventrow.Erased).SetSlug(freeSlug(p.ID)).SetBodyText("").ClearBodyJSON().
			SetUpdatedAt(postgres.Now()).Exec(ctx)
		if err != nil {
			return errors.Wrap(err, "blank a post")
		}
	}
	if err := t.removeQuotes(ctx, rows); err != nil {
		return err
	}
	t.nextAfter(len(rows), lastOf(rows), stageComments)
	return nil
}

// freeSlug returns a slug that no other post has. The erased slug in events is predictable, so a
// caller could create a post with it and make the erasure fail forever. 40 random bits prevent that.
func freeSlug(of publicid.Post) string {
	return eventrow.ErasedSlug(of) + "-" + strings.ToLower(rand.Text()[:8])
}

// blankComments blanks the text of the noted comments. Deleted comments have none.
func (t *step) blankComments(ctx context.Context) error {
	rows, err := t.notedPage(ctx, subjectrecord.KindComment)
	if err != nil {
		return err
	}
	err = t.Comment.Update().Where(comment.IDIn(items[publicid.Comment](rows)...), comment.DeletedAtIsNil()).
		SetBodyText(eventrow.Erased).ClearBodyJSON().SetUpdatedAt(postgres.Now()).Exec(ctx)
	if err != nil {
		return errors.Wrap(err, "blank the comments")
	}
	if err := t.removeQuotes(ctx, rows); err != nil {
		return err
	}
	t.nextAfter(len(rows), lastOf(rows), stageEvents)
	return nil
}

// removeQuotes removes the kept answers that quote the blanked texts. The rows of these texts are
// locked, so a later answer shows them blanked.
func (t *step) removeQuotes(ctx context.Context, rows []*db.SubjectRecord) error {
	texts := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		texts[i] = r.ItemID
	}
	return change.RemoveAnswers(ctx, t.Tx, texts...)
}

// eraseEvents erases the person's data from a page of events. Later delivery attempts send the erased
// payload. No event that names the person is committed after the erasure itself, so the walk reaches
// all of them.
func (t *step) eraseEvents(ctx context.Context) error {
	ids, last, over, err := t.walk(ctx)
	if err != nil {
		return err
	}
	rows, err := t.Event.Query().Where(entevent.IDIn(ids...)).Order(db.Asc(entevent.FieldID)).ForUpdate(postgres.NoKeyUpdate).All(ctx)
	if err != nil {
		return errors.Wrap(err, "lock the events")
	}
	var noted []publicid.Event
	for _, e := range rows {
		payload, err := eventrow.Erase(eventrow.Type(e.Type), e.Payload)
		if err != nil {
			return err
		}
		same := string(payload) == string(e.Payload)
		if same && eventrow.Type(e.Type) != eventrow.ContactDeleted {
			continue
		}
		// A receiver may quote the person's data in its answer to the deletion event.
		noted = append(noted, e.ID)
		if same {
			continue
		}
		if err := replacePayload(ctx, t.Tx, e.ID, payload); err != nil {
			return err
		}
	}
	if err := t.noteEvents(ctx, noted); err != nil {
		return err
	}
	if over {
		t.next(stageAnswers)
	} else {
		t.update.SetPosition(last)
	}
	return nil
}

// clearAnswers removes the answers of receivers, which may quote the payload. Attempts that began
// before the erasure of their payload are recorded later. After the first round the step therefore
// waits until these attempts have ended, including those that wait for a row lock. Then it clears
// the answers again.
func (t *step) clearAnswers(ctx context.Context) error {
	first := t.request.Stage == stageAnswers
	if !first {
		n, err := onTheirWay(ctx, t.Tx, t.request.ID, false)
		if err != nil || n > 0 {
			t.wait = n > 0
			return err
		}
		failpoint.Hit(failpoint.BeforeLastAnswers)
	}
	n, err := clearAnswers(ctx, t.Tx, t.request.ID, answersPage)
	if err != nil || n == answersPage {
		return err // there may be more
	}
	if first {
		pending, err := onTheirWay(ctx, t.Tx, t.request.ID, true)
		if err != nil {
			return err
		}
		if pending > 0 {
			t.next(stageLastAnswers)
			t.wait = true
			return nil
		}
	}
	t.update.SetStatus(subjectrequest.StatusCompleted).SetFinishedAt(postgres.Now())
	return removeRecords(ctx, t.Change, t.request.ID)
}

// items returns the ids of the noted items.
func items[T any, P interface {
	*T
	ScanUUID(v pgtype.UUID) error
}](rows []*db.SubjectRecord) []T {
	ids := make([]T, len(rows))
	for i, r := range rows {
		ids[i] = publicid.Of[T, P](r.ItemID)
	}
	return ids
}

func lastOf(rows []*db.SubjectRecord) func() uuid.UUID {
	return func() uuid.UUID { return rows[len(rows)-1].ID.UUID() }
}
