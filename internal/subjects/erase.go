package subjects

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
	"earshot/internal/event"
	"earshot/internal/failpoint"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// blankPosts takes title and text off the posts that are noted, deleted ones too, and the slug, which
// was made of the title. Where nothing is noted, because the text stays, it goes on at once.
func (t *step) blankPosts(ctx context.Context) error {
	rows, err := t.notedPage(ctx, subjectrecord.KindPost)
	if err != nil {
		return err
	}
	ids := items[publicid.Post](rows)
	found, err := t.Post.Query().Where(post.IDIn(ids...)).Order(db.Asc(post.FieldID)).ForUpdate(store.NoKeyUpdate).
		Select(post.FieldID).All(ctx)
	if err != nil {
		return errors.Wrap(err, "lock the posts")
	}
	for _, p := range found {
		err := t.Post.UpdateOneID(p.ID).SetTitle(event.Erased).SetSlug(freeSlug(p.ID)).SetBodyText("").ClearBodyJSON().
			SetUpdatedAt(store.Now()).Exec(ctx)
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

// freeSlug is a slug that no other post has. The one of events alone can be foretold, and so taken: a
// page that fails by it would fail for ever. With 40 bits of chance behind it, it can't.
func freeSlug(of publicid.Post) string {
	return event.ErasedSlug(of) + "-" + strings.ToLower(rand.Text()[:8])
}

// blankComments takes the text off the comments that are noted; those that are deleted have none.
func (t *step) blankComments(ctx context.Context) error {
	rows, err := t.notedPage(ctx, subjectrecord.KindComment)
	if err != nil {
		return err
	}
	err = t.Comment.Update().Where(comment.IDIn(items[publicid.Comment](rows)...), comment.DeletedAtIsNil()).
		SetBodyText(event.Erased).ClearBodyJSON().SetUpdatedAt(store.Now()).Exec(ctx)
	if err != nil {
		return errors.Wrap(err, "blank the comments")
	}
	if err := t.removeQuotes(ctx, rows); err != nil {
		return err
	}
	t.nextAfter(len(rows), lastOf(rows), stageEvents)
	return nil
}

// removeQuotes removes the kept answers that quote texts which the step has blanked. The texts are
// locked, so a later answer shows what is left of them.
func (t *step) removeQuotes(ctx context.Context, rows []*db.SubjectRecord) error {
	texts := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		texts[i] = r.ItemID
	}
	return store.RemoveAnswers(ctx, t.Tx, t.request.OrganizationID, texts...)
}

// eraseEvents erases what a page of events says of the person. Whoever attempts a delivery later
// sends what is left. Nothing names the person that is committed behind the erasure's own commit, so
// the walk comes to all of it.
func (t *step) eraseEvents(ctx context.Context) error {
	ids, last, over, err := t.walk(ctx)
	if err != nil {
		return err
	}
	rows, err := t.Event.Query().Where(entevent.IDIn(ids...)).Order(db.Asc(entevent.FieldID)).ForUpdate(store.NoKeyUpdate).All(ctx)
	if err != nil {
		return errors.Wrap(err, "lock the events")
	}
	var noted []publicid.Event
	for _, e := range rows {
		payload, err := event.Erase(event.Type(e.Type), e.Payload)
		if err != nil {
			return err
		}
		same := string(payload) == string(e.Payload)
		if same && event.Type(e.Type) != event.ContactDeleted {
			continue
		}
		// A receiver that is told of the deletion may answer with what it knew.
		noted = append(noted, e.ID)
		if same {
			continue
		}
		if err := store.ReplacePayload(ctx, t.Tx, e.OrganizationID, e.ID, payload); err != nil {
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

// clearAnswers removes what receivers answered, which may quote what they were sent. An attempt that
// began before its payload was erased is recorded later: after the first round it waits until such
// ones have ended, also those that wait for the row that they claim, and clears once more.
func (t *step) clearAnswers(ctx context.Context) error {
	first := t.request.Stage == stageAnswers
	if !first {
		n, err := store.OnTheirWay(ctx, t.Tx, t.request.ID, false)
		if err != nil || n > 0 {
			t.wait = n > 0
			return err
		}
		failpoint.Hit(failpoint.BeforeLastAnswers)
	}
	n, err := store.ClearAnswers(ctx, t.Tx, t.request.ID, answersPage)
	if err != nil || n == answersPage {
		return err // there may be more
	}
	if first {
		pending, err := store.OnTheirWay(ctx, t.Tx, t.request.ID, true)
		if err != nil {
			return err
		}
		if pending > 0 {
			t.next(stageLastAnswers)
			t.wait = true
			return nil
		}
	}
	t.update.SetStatus(subjectrequest.StatusCompleted).SetFinishedAt(store.Now())
	return removeRecords(ctx, t.Change, t.request.ID)
}

// items are the ids of what is noted.
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
