package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Subscription is what a person has chosen to be e-mailed about. It is of an address and not of a
// contact, so that it holds for whatever contact comes with the address later. Who has none has
// chosen nothing yet.
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
		// That of the page on which the person chose.
		field.String("language").Default("en"),
	}
}

// Indexes of the entity.
func (Subscription) Indexes() []ent.Index {
	return []ent.Index{index.Fields("organization_id", "email_hash").Unique()}
}
