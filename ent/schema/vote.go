package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Vote is one voter's support for a post.
type Vote struct{ ent.Schema }

// Mixin of the entity.
func (Vote) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (Vote) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Vote{}).Default(publicid.NewVote).Immutable(),
		field.UUID("post_id", publicid.Post{}),
		// Null for contacts, and for anonymous voters who have verified their e-mail address.
		field.UUID("user_id", publicid.User{}).Optional().Nillable().Immutable(),
		// The contact that voted. A trigger sets it to null when the contact is deleted.
		field.UUID("contact_id", publicid.Contact{}).Optional().Nillable().Immutable(),
		// HMAC of the voter's normalised e-mail address. For members and anonymous voters it is the
		// address at the time of the vote. For contacts a trigger keeps the current one. Null if the
		// contact has no address, or if another non-member vote on the post has the same hash.
		field.Bytes("email_hash").Optional().Nillable().Immutable(),
		// The contact's revenue. Triggers copy it from the contact and sum it up in post_revenues.
		field.Int64("mrr_cents").Optional().Nillable().Immutable(),
		field.String("currency").Optional().Nillable().Immutable(),
	}
}

// Edges of the entity.
func (Vote) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("post", Post.Type).Field("post_id").Unique().Required(),
		edge.To("user", User.Type).Field("user_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.NoAction)),
		edge.To("contact", Contact.Type).Field("contact_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.NoAction)),
	}
}

// Indexes of the entity.
func (Vote) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("post_id", "user_id").Unique(),
		// Excludes members, because two members may share an address. user_id identifies them.
		index.Fields("post_id", "email_hash").Unique().Annotations(entsql.IndexWhere("user_id IS NULL")),
		// The contact comes first, so that the index also finds all votes of a contact.
		index.Fields("contact_id", "post_id").Unique().Annotations(entsql.IndexWhere("contact_id IS NOT NULL")),
		index.Fields("post_id", "id"),
		index.Fields("organization_id", "email_hash").Annotations(entsql.IndexWhere("email_hash IS NOT NULL")),
	}
}
