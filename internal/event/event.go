// Package event is the catalogue of what can happen: the name of each event
// and the exact keys of its payload (specification, Events).
//
// A payload is frozen into bytes when the event happens; those bytes are what
// every attempt, replay and read shows.
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

// WebhookTest is sent to one webhook when somebody asks for it. Nobody can
// subscribe to it.
const WebhookTest Type = "webhook.test"

// Types lists all events that can be subscribed to, in the order of the
// specification.
var Types = []Type{
	PostCreated, PostStatusChanged, VoteCreated, CommentCreated,
	ChangelogPublished, ContactCreated, ContactUpdated, ContactDeleted,
}

// Delivered lists all events that a delivery can be of.
var Delivered = append(slices.Clone(Types), WebhookTest)

// Head stands at the start of every payload.
type Head struct {
	Event          Type                  `json:"event"`
	OrganizationID publicid.Organization `json:"organizationId"`
}

// Payload is one of the structs below.
type Payload interface{ head() *Head }

func (h *Head) head() *Head { return h }

// BoardHead is Head for what happens on a board.
type BoardHead struct {
	Head
	BoardID publicid.Board `json:"boardId"`
}

// Post as events show it.
type Post struct {
	ID        publicid.Post `json:"id"`
	Title     string        `json:"title"`
	Slug      string        `json:"slug"`
	Status    string        `json:"status"`
	CreatedAt time.Time     `json:"createdAt"`
}

// PostCreatedPayload tells of a new post on a board.
type PostCreatedPayload struct {
	BoardHead
	Post Post `json:"post"`
}

// PostStatusChangedPayload tells that a post moved between statuses.
type PostStatusChangedPayload struct {
	BoardHead
	Post           Post   `json:"post"`
	PreviousStatus string `json:"previousStatus"`
}

// Vote as events show it. UserID is null for anonymous voters.
type Vote struct {
	ID        publicid.Vote  `json:"id"`
	PostID    publicid.Post  `json:"postId"`
	UserID    *publicid.User `json:"userId"`
	CreatedAt time.Time      `json:"createdAt"`
}

// VoteCreatedPayload tells that someone voted on a post.
type VoteCreatedPayload struct {
	BoardHead
	Vote Vote `json:"vote"`
}

// Comment as events show it.
type Comment struct {
	ID           publicid.Comment  `json:"id"`
	PostID       publicid.Post     `json:"postId"`
	ParentID     *publicid.Comment `json:"parentId"`
	AuthorUserID publicid.User     `json:"authorUserId"`
	BodyText     string            `json:"bodyText"`
	CreatedAt    time.Time         `json:"createdAt"`
}

// CommentCreatedPayload tells of a comment or a reply.
type CommentCreatedPayload struct {
	BoardHead
	Comment Comment `json:"comment"`
}

// Entry as events show it: an entry of the changelog.
type Entry struct {
	ID          publicid.ChangelogEntry `json:"id"`
	Title       string                  `json:"title"`
	Slug        string                  `json:"slug"`
	PublishedAt time.Time               `json:"publishedAt"`
}

// ChangelogPublishedPayload tells that an entry was published.
type ChangelogPublishedPayload struct {
	BoardHead
	Entry Entry `json:"entry"`
}

// Contact as events show it: the resource without its organization.
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

// ContactCreatedPayload tells that a contact was inserted.
type ContactCreatedPayload struct {
	Head
	Contact Contact `json:"contact"`
}

// Change is a trait before and after.
type Change struct {
	From any `json:"from"`
	To   any `json:"to"`
}

// ContactUpdatedPayload tells that a trait changed. Changes is by the trait's
// name in the API and never holds lastSeenAt, updatedAt or firstSeenAt.
type ContactUpdatedPayload struct {
	Head
	Contact Contact           `json:"contact"`
	Changes map[string]Change `json:"changes"`
}

// DeletedContact is all that is told of a contact that is gone.
type DeletedContact struct {
	ID             publicid.Contact `json:"id"`
	ExternalUserID *string          `json:"externalUserId"`
}

// ContactDeletedPayload tells that a contact was deleted.
type ContactDeletedPayload struct {
	Head
	Contact DeletedContact `json:"contact"`
}

// Webhook as events show it.
type Webhook struct {
	ID        publicid.Webhook `json:"id"`
	CreatedAt time.Time        `json:"createdAt"`
}

// WebhookTestPayload tells nothing but that the webhook works.
type WebhookTestPayload struct {
	Head
	Webhook Webhook `json:"webhook"`
}

// Freeze stamps the payload with its event and organization and turns it into
// the bytes that receivers get.
func Freeze(t Type, organization publicid.Organization, p Payload) ([]byte, error) {
	h := p.head()
	h.Event, h.OrganizationID = t, organization
	// Plain Marshal, whose escapes the API's encoder leaves as they are: so the
	// bytes that a receiver got and those that the delivery log shows are equal.
	payload, err := json.Marshal(p)
	if err != nil {
		return nil, errors.Wrap(err, "encode the payload")
	}
	return payload, nil
}
