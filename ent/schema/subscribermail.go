package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"earshot/internal/publicid"
)

// SubscriberMail is the e-mail of a digest to one recipient. The row is deleted when the e-mail was
// sent or is no longer wanted. The Message-ID is derived from the row's id.
type SubscriberMail struct{ ent.Schema }

// Mixin of the entity.
func (SubscriberMail) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (SubscriberMail) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.SubscriberMail{}).Default(publicid.NewSubscriberMail).Immutable(),
		field.UUID("digest_id", uuid.UUID{}).Immutable(),
		// The recipient: HMAC of the normalised address.
		field.Bytes("email_hash").Immutable(),
		// The time of the next try. A worker that tries to send the e-mail moves it into the future,
		// which keeps other workers off the row.
		field.Time("due_at").Default(now),
	}
}

// Indexes of the entity.
func (SubscriberMail) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("digest_id", "email_hash").Unique(),
		index.Fields("organization_id", "due_at"),
		index.Fields("organization_id", "email_hash"),
		// The sweep finds overdue e-mails with it.
		index.Fields("due_at"),
	}
}
