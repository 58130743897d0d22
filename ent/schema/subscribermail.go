package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"earshot/internal/publicid"
)

// SubscriberMail is one e-mail of a digest that is to be sent to one person. Its row goes once it
// was sent, or nobody is to have it any more. Its id makes the Message-ID.
type SubscriberMail struct{ ent.Schema }

// Mixin of the entity.
func (SubscriberMail) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (SubscriberMail) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.SubscriberMail{}).Default(publicid.NewSubscriberMail).Immutable(),
		field.UUID("digest_id", uuid.UUID{}).Immutable(),
		// Who is to have it: HMAC of the normalised address.
		field.Bytes("email_hash").Immutable(),
		// When it may be tried. While somebody tries it that is later, so that nobody else does.
		field.Time("due_at").Default(now),
	}
}

// Indexes of the entity.
func (SubscriberMail) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("digest_id", "email_hash").Unique(),
		index.Fields("organization_id", "due_at"),
		index.Fields("organization_id", "email_hash"),
		// What the sweep looks for.
		index.Fields("due_at"),
	}
}
