package privacy

import (
	"context"
	"maps"
	"slices"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/ent/db/subjectrecord"
	"earshot/internal/event"
	"earshot/internal/publicid"
)

// subjectOf returns the id of the contact, post, vote or comment that an event is about. It is zero
// for other events.
func subjectOf(h EventHead) uuid.UUID {
	text := event.Subject(h.Head)
	switch event.Type(h.Type) {
	case event.ContactCreated, event.ContactUpdated, event.ContactDeleted:
		return publicid.Read[publicid.Contact](text).UUID()
	case event.PostCreated, event.PostStatusChanged:
		return publicid.Read[publicid.Post](text).UUID()
	case event.VoteCreated:
		return publicid.Read[publicid.Vote](text).UUID()
	case event.CommentCreated:
		return publicid.Read[publicid.Comment](text).UUID()
	}
	return uuid.Nil
}

// authorOf returns the author of the comment that an event is about. It is zero for other events.
func authorOf(h EventHead) uuid.UUID {
	if event.Type(h.Type) != event.CommentCreated {
		return uuid.Nil
	}
	return publicid.Read[publicid.User](event.Author(h.Head)).UUID()
}

// ofPerson selects the events that are about the person or about noted items.
func (t *step) ofPerson(ctx context.Context, heads []EventHead) (map[publicid.Event]bool, error) {
	named := map[uuid.UUID]bool{}
	for _, h := range heads {
		named[subjectOf(h)], named[authorOf(h)] = true, true
	}
	noted, err := t.noted(ctx, named)
	if err != nil {
		return nil, err
	}
	events, deleted := map[publicid.Event]bool{}, map[publicid.Comment]publicid.Event{}
	for _, h := range heads {
		if noted[subjectOf(h)] {
			events[h.ID] = true
		} else if noted[authorOf(h)] {
			deleted[publicid.Of[publicid.Comment](subjectOf(h))] = h.ID
		}
	}
	// A live comment that is not noted belongs to another contact with the same address.
	others, err := t.Comment.Query().Where(comment.IDIn(slices.Collect(maps.Keys(deleted))...), comment.DeletedAtIsNil()).
		Select(comment.FieldID).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for comments that are there")
	}
	for _, one := range others {
		delete(deleted, one.ID)
	}
	for _, id := range deleted {
		events[id] = true
	}
	return events, nil
}

// noted returns the ids that are the person's contact or noted items.
func (t *step) noted(ctx context.Context, ids map[uuid.UUID]bool) (map[uuid.UUID]bool, error) {
	found := map[uuid.UUID]bool{t.request.ContactID.UUID(): true}
	rows, err := t.SubjectRecord.Query().
		Where(subjectrecord.RequestID(t.request.ID), subjectrecord.ItemIDIn(slices.Collect(maps.Keys(ids))...)).
		Select(subjectrecord.FieldItemID).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "look for the noted items of events")
	}
	for _, r := range rows {
		found[r.ItemID] = true
	}
	return found, nil
}

// noteEvents notes events, so that clearAnswers can find the receivers' answers to them.
func (t *step) noteEvents(ctx context.Context, events []publicid.Event) error {
	rows := make([]*db.SubjectRecordCreate, len(events))
	for i, id := range events {
		rows[i] = t.SubjectRecord.Create().SetRequestID(t.request.ID).SetKind(subjectrecord.KindEvent).SetItemID(id.UUID())
	}
	if err := t.SubjectRecord.CreateBulk(rows...).Exec(ctx); err != nil {
		return errors.Wrap(err, "note events")
	}
	return nil
}

// notedPage reads the next page of noted items of a kind.
func (t *step) notedPage(ctx context.Context, kind subjectrecord.Kind) ([]*db.SubjectRecord, error) {
	rows, err := t.SubjectRecord.Query().
		Where(subjectrecord.RequestID(t.request.ID), subjectrecord.KindEQ(kind),
			subjectrecord.IDGT(publicid.Of[publicid.SubjectRecord](t.position()))).
		Order(db.Asc(subjectrecord.FieldID)).Limit(rowsPage).All(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "read the noted items")
	}
	return rows, nil
}
