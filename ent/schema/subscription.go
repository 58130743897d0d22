package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Subscription holds a person's choice of e-mails. It belongs to an address instead of a contact, so
// it also applies to a later contact with the same address. A person without a row has made no
// choice yet.
type Subscription struct{ ent.Schema }

// Mixin of the entity.
func (Subscription) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (Subscription) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Subscription{}).Default(publicid.NewSubscription).Immutable(),
		// HMAC of the normalised address.
		field.Bytes("email_hash").Immutable(),
		field.Bool("status_updates").Default(true),
		field.Bool("changelog").Default(false),
		// The language of the page on which the person made the choice.
		field.String("language").Default("en"),
	}
}

// Indexes of the entity.
func (Subscription) Indexes() []ent.Index {
	return []ent.Index{index.Fields("organization_id", "email_hash").Unique()}
}
