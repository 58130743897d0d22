package privacy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"earshot/ent/db"
	"earshot/ent/db/comment"
	"earshot/ent/db/contact"
	"earshot/ent/db/delivery"
	entevent "earshot/ent/db/event"
	"earshot/ent/db/post"
	"earshot/ent/db/predicate"
	"earshot/ent/db/subjectrecord"
	"earshot/ent/db/subjectrequest"
	"earshot/ent/db/subscription"
	"earshot/ent/db/vote"
	"earshot/internal/contacts"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/retention"
)

// The JSON of the records. The record of a contact has the form that events use.
type (
	body struct {
		JSON json.RawMessage `json:"json"`
		Text string          `json:"text"`
	}
	postRecord struct {
		ID        publicid.Post  `json:"id"`
		BoardID   publicid.Board `json:"boardId"`
		Title     string         `json:"title"`
		Slug      string         `json:"slug"`
		Status    post.Status    `json:"status"`
		Body      body           `json:"body"`
		CreatedAt time.Time      `json:"createdAt"`
		UpdatedAt time.Time      `json:"updatedAt"`
		DeletedAt *time.Time     `json:"deletedAt"`
	}
	voteRecord struct {
		ID        publicid.Vote `json:"id"`
		PostID    publicid.Post `json:"postId"`
		CreatedAt time.Time     `json:"createdAt"`
	}
	commentRecord struct {
		ID        publicid.Comment  `json:"id"`
		PostID    publicid.Post     `json:"postId"`
		ParentID  *publicid.Comment `json:"parentId"`
		Body      body              `json:"body"`
		CreatedAt time.Time         `json:"createdAt"`
		UpdatedAt time.Time         `json:"updatedAt"`
	}
	eventRecord struct {
		ID        publicid.Event  `json:"id"`
		Type      string          `json:"type"`
		Payload   json.RawMessage `json:"payload"`
		CreatedAt time.Time       `json:"createdAt"`
	}
	subscriptionRecord struct {
		StatusUpdates bool      `json:"statusUpdates"`
		Changelog     bool      `json:"changelog"`
		Language      string    `json:"language"`
		CreatedAt     time.Time `json:"createdAt"`
		UpdatedAt     time.Time `json:"updatedAt"`
	}
	deliveryRecord struct {
		ID           publicid.Delivery `json:"id"`
		WebhookID    publicid.Webhook  `json:"webhookId"`
		EventID      publicid.Event    `json:"eventId"`
		EventType    string            `json:"eventType"`
		Status       delivery.Status   `json:"status"`
		AttemptCount int               `json:"attemptCount"`
		CreatedAt    time.Time         `json:"createdAt"`
		DeliveredAt  *time.Time        `json:"deliveredAt"`
	}
)

// keep writes a record with its own seal. All data about a person in one place is more valuable to a
// thief than the scattered rows.
func (t *step) keep(ctx context.Context, kind subjectrecord.Kind, item uuid.UUID, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return errors.Wrap(err, "encode a record")
	}
	id := publicid.NewSubjectRecord()
	err = t.SubjectRecord.Create().SetID(id).SetRequestID(t.request.ID).SetKind(kind).SetItemID(item).
		SetSealed(t.secrets.SealApart(id.String(), string(text))).Exec(ctx)
	if err != nil {
		return errors.Wrap(err, "insert a record")
	}
	t.records++
	return nil
}

// person loads the contact of an export. If the contact is gone, it returns nil and stops the export,
// because the person's rows can no longer be identified.
func (t *step) person(ctx context.Context) (*db.Contact, error) {
	found, err := t.Contact.Query().Where(contact.ID(t.request.ContactID)).Only(ctx)
	if db.IsNotFound(err) {
		t.records = 0
		stop(t.update)
		return nil, removeRecords(ctx, t.Change, t.request.ID)
	}
	if err != nil {
		return nil, errors.Wrap(err, "load the contact")
	}
	return found, nil
}

func (t *step) exportContact(ctx context.Context) error {
	of, err := t.person(ctx)
	if of == nil {
		return err
	}
	t.next(stagePosts)
	if err := t.keep(ctx, subjectrecord.KindContact, of.ID.UUID(), contacts.Describe(of)); err != nil || of.EmailHash == nil {
		return err
	}
	chosen, err := t.Subscription.Query().Where(subscription.EmailHash(*of.EmailHash)).All(ctx) // one, or none
	if err != nil {
		return errors.Wrap(err, "read the person's choices")
	}
	for _, s := range chosen {
		record := subscriptionRecord{s.StatusUpdates, s.Changelog, s.Language, s.CreatedAt, s.UpdatedAt}
		if err := t.keep(ctx, subjectrecord.KindSubscription, s.ID.UUID(), record); err != nil {
			return err
		}
	}
	return nil
}

func (t *step) exportPosts(ctx context.Context) error {
	of, err := t.person(ctx)
	if of == nil {
		return err
	}
	guests, err := guestsOf(ctx, t.Tx, of)
	if err != nil {
		return err
	}
	// Contacts with the same address share a guest, so posts of other contacts are excluded.
	own := post.Or(post.ContactID(of.ID), post.And(post.ContactIDIsNil(), post.AuthorUserIDIn(guests...)))
	rows, err := t.Post.Query().Where(own, post.IDGT(publicid.Of[publicid.Post](t.position()))).
		Order(db.Asc(post.FieldID)).Limit(rowsPage).All(ctx)
	if err != nil {
		return errors.Wrap(err, "read the person's posts")
	}
	for _, p := range rows {
		err := t.keep(ctx, subjectrecord.KindPost, p.ID.UUID(), postRecord{
			p.ID, p.BoardID, p.Title, p.Slug, p.Status, body{p.BodyJSON, p.BodyText}, p.CreatedAt, p.UpdatedAt, p.DeletedAt,
		})
		if err != nil {
			return err
		}
	}
	t.nextAfter(len(rows), func() uuid.UUID { return rows[len(rows)-1].ID.UUID() }, stageVotes)
	return nil
}

func (t *step) exportVotes(ctx context.Context) error {
	of, err := t.person(ctx)
	if of == nil {
		return err
	}
	own := []predicate.Vote{vote.ContactID(of.ID)}
	if of.EmailHash != nil {
		own = append(own, vote.And(vote.EmailHash(*of.EmailHash), vote.ContactIDIsNil()))
	}
	rows, err := t.Vote.Query().Where(vote.Or(own...), vote.IDGT(publicid.Of[publicid.Vote](t.position()))).
		Order(db.Asc(vote.FieldID)).Limit(rowsPage).All(ctx)
	if err != nil {
		return errors.Wrap(err, "read the person's votes")
	}
	for _, v := range rows {
		if err := t.keep(ctx, subjectrecord.KindVote, v.ID.UUID(), voteRecord{v.ID, v.PostID, v.CreatedAt}); err != nil {
			return err
		}
	}
	t.nextAfter(len(rows), func() uuid.UUID { return rows[len(rows)-1].ID.UUID() }, stageComments)
	return nil
}

func (t *step) exportComments(ctx context.Context) error {
	of, err := t.person(ctx)
	if of == nil {
		return err
	}
	own := []predicate.Comment{comment.ContactID(of.ID)}
	if of.EmailHash != nil {
		own = append(own, comment.And(comment.EmailHash(*of.EmailHash), comment.ContactIDIsNil()))
	}
	rows, err := t.Comment.Query().Where(comment.Or(own...), comment.IDGT(publicid.Of[publicid.Comment](t.position()))).
		Order(db.Asc(comment.FieldID)).Limit(rowsPage).All(ctx)
	if err != nil {
		return errors.Wrap(err, "read the person's comments")
	}
	for _, c := range rows {
		err := t.keep(ctx, subjectrecord.KindComment, c.ID.UUID(), commentRecord{
			c.ID, c.PostID, c.ParentID, body{c.BodyJSON, c.BodyText}, c.CreatedAt, c.UpdatedAt,
		})
		if err != nil {
			return err
		}
	}
	t.nextAfter(len(rows), func() uuid.UUID { return rows[len(rows)-1].ID.UUID() }, stageSubmissions)
	return nil
}

func (t *step) exportEvents(ctx context.Context) error {
	if of, err := t.person(ctx); of == nil {
		return err
	}
	ids, last, over, err := t.walk(ctx)
	if err != nil {
		return err
	}
	rows, err := t.Event.Query().Where(entevent.IDIn(ids...)).Order(db.Asc(entevent.FieldID)).All(ctx)
	if err != nil {
		return errors.Wrap(err, "read events")
	}
	for _, e := range rows {
		if err := t.keep(ctx, subjectrecord.KindEvent, e.ID.UUID(), eventRecord{e.ID, e.Type, e.Payload, e.CreatedAt}); err != nil {
			return err
		}
	}
	if err := t.exportDeliveries(ctx, ids); err != nil {
		return err
	}
	if !over {
		t.update.SetPosition(last)
		return nil
	}
	at := postgres.Now()
	t.update.SetStatus(subjectrequest.StatusCompleted).SetFinishedAt(at).SetExpiresAt(at.Add(retention.ExportRetention))
	return nil
}

func (t *step) exportDeliveries(ctx context.Context, of []publicid.Event) error {
	rows, err := t.Delivery.Query().Where(delivery.EventIDIn(of...)).Order(db.Asc(delivery.FieldID)).All(ctx)
	if err != nil {
		return errors.Wrap(err, "read deliveries")
	}
	for _, d := range rows {
		err := t.keep(ctx, subjectrecord.KindDelivery, d.ID.UUID(), deliveryRecord{
			d.ID, d.WebhookID, d.EventID, d.EventType, d.Status, d.AttemptCount, d.CreatedAt, d.DeliveredAt,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
