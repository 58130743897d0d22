// Package event is the catalogue of events: the name of each event and the exact keys of its
// payload (specification, Events).
//
// A payload is encoded once, when the event happens. Every attempt, replay and read shows these
// bytes.
package event

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"earshot/internal/publicid"
)

// Type names an event on the wire.
type Type string

// The events (specification, Allowed event names).
const (
	PostCreated        Type = "post.created"
	PostStatusChanged  Type = "post.status_changed"
	VoteCreated        Type = "vote.created"
	CommentCreated     Type = "comment.created"
	ChangelogPublished Type = "changelog.published"
	ContactCreated     Type = "contact.created"
	ContactUpdated     Type = "contact.updated"
	ContactDeleted     Type = "contact.deleted"
)

// WebhookTest is sent to one webhook on request. It cannot be subscribed to.
const WebhookTest Type = "webhook.test"

// Types lists all events that a webhook can subscribe to, in the order of the specification.
var Types = []Type{
	PostCreated, PostStatusChanged, VoteCreated, CommentCreated,
	ChangelogPublished, ContactCreated, ContactUpdated, ContactDeleted,
}

// Delivered lists all events that a delivery can carry.
var Delivered = append(slices.Clone(Types), WebhookTest)

// Head is the beginning of every payload.
type Head struct {
	Event          Type                  `json:"event"`
	OrganizationID publicid.Organization `json:"organizationId"`
}

// Payload is one of the structs below.
type Payload interface{ head() *Head }

func (h *Head) head() *Head { return h }

// BoardHead is the head of an event on a board.
type BoardHead struct {
	Head
	BoardID publicid.Board `json:"boardId"`
}

// Post is a post in an event.
type Post struct {
	ID        publicid.Post `json:"id"`
	Title     string        `json:"title"`
	Slug      string        `json:"slug"`
	Status    string        `json:"status"`
	CreatedAt time.Time     `json:"createdAt"`
}

// PostCreatedPayload announces a new post on a board.
type PostCreatedPayload struct {
	BoardHead
	Post Post `json:"post"`
}

// PostStatusChangedPayload announces that a post moved between statuses.
type PostStatusChangedPayload struct {
	BoardHead
	Post           Post   `json:"post"`
	PreviousStatus string `json:"previousStatus"`
}

// Vote is a vote in an event. UserID is null for anonymous voters.
type Vote struct {
	ID        publicid.Vote  `json:"id"`
	PostID    publicid.Post  `json:"postId"`
	UserID    *publicid.User `json:"userId"`
	CreatedAt time.Time      `json:"createdAt"`
}

// VoteCreatedPayload announces a vote on a post.
type VoteCreatedPayload struct {
	BoardHead
	Vote Vote `json:"vote"`
}

// Comment is a comment in an event.
type Comment struct {
	ID           publicid.Comment  `json:"id"`
	PostID       publicid.Post     `json:"postId"`
	ParentID     *publicid.Comment `json:"parentId"`
	AuthorUserID publicid.User     `json:"authorUserId"`
	BodyText     string            `json:"bodyText"`
	CreatedAt    time.Time         `json:"createdAt"`
}

// CommentCreatedPayload announces a comment or a reply.
type CommentCreatedPayload struct {
	BoardHead
	Comment Comment `json:"comment"`
}

// Entry is a changelog entry in an event.
type Entry struct {
	ID          publicid.ChangelogEntry `json:"id"`
	Title       string                  `json:"title"`
	Slug        string                  `json:"slug"`
	PublishedAt time.Time               `json:"publishedAt"`
}

// ChangelogPublishedPayload announces that an entry was published.
type ChangelogPublishedPayload struct {
	BoardHead
	Entry Entry `json:"entry"`
}

// Contact is a contact in an event: the resource without its organization.
type Contact struct {
	ID             publicid.Contact `json:"id"`
	ExternalUserID *string          `json:"externalUserId"`
	Email          *string          `json:"email"`
	Name           *string          `json:"name"`
	Plan           *string          `json:"plan"`
	MRRCents       *int64           `json:"mrrCents"`
	Currency       *string          `json:"currency"`
	Source         string           `json:"source"`
	ConsentBasis   string           `json:"consentBasis"`
	Metadata       json.RawMessage  `json:"metadata"`
	FirstSeenAt    time.Time        `json:"firstSeenAt"`
	LastSeenAt     time.Time        `json:"lastSeenAt"`
	CreatedAt      time.Time        `json:"createdAt"`
	UpdatedAt      time.Time        `json:"updatedAt"`
}

// ContactCreatedPayload announces that a contact was inserted.
type ContactCreatedPayload struct {
	Head
	Contact Contact `json:"contact"`
}

// Change is a trait before and after an update.
type Change struct {
	From any `json:"from"`
	To   any `json:"to"`
}

// ContactUpdatedPayload announces that a trait changed. The keys of Changes are the names of the
// traits in the API. Changes never has lastSeenAt, updatedAt or firstSeenAt.
type ContactUpdatedPayload struct {
	Head
	Contact Contact           `json:"contact"`
	Changes map[string]Change `json:"changes"`
}

// DeletedContact is a deleted contact in an event. It has only the ids.
type DeletedContact struct {
	ID             publicid.Contact `json:"id"`
	ExternalUserID *string          `json:"externalUserId"`
}

// ContactDeletedPayload announces that a contact was deleted.
type ContactDeletedPayload struct {
	Head
	Contact DeletedContact `json:"contact"`
}

// Webhook is a webhook in an event.
type Webhook struct {
	ID        publicid.Webhook `json:"id"`
	CreatedAt time.Time        `json:"createdAt"`
}

// WebhookTestPayload is the payload of a test. It has only the webhook.
type WebhookTestPayload struct {
	Head
	Webhook Webhook `json:"webhook"`
}

// Freeze sets the payload's event and organization and encodes it into the bytes that receivers
// get.
func Freeze(t Type, organization publicid.Organization, p Payload) ([]byte, error) {
	h := p.head()
	h.Event, h.OrganizationID = t, organization
	// Use plain Marshal: the API's encoder keeps its escapes. The bytes in the delivery log are
	// therefore equal to those that the receiver got.
	payload, err := json.Marshal(p)
	if err != nil {
		return nil, errors.Wrap(err, "encode the payload")
	}
	return payload, nil
}
