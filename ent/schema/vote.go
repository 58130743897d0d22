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
		// Null for contacts, and for anonymous voters of the e-mail-verified public flow.
		field.UUID("user_id", publicid.User{}).Optional().Nillable().Immutable(),
		// The contact that voted; null again once it is deleted, which the database sees to.
		field.UUID("contact_id", publicid.Contact{}).Optional().Nillable().Immutable(),
		// HMAC of the voter's normalised e-mail address: that of a member or an anonymous one
		// when they voted, or the present one of a contact, which the database sees to. Null where
		// the contact has none, or another vote on the post has it that isn't a member's.
		field.Bytes("email_hash").Optional().Nillable().Immutable(),
		// What the contact pays, copied by the database, which counts it on the post.
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
		// Members are told apart by their ids: two may have one address.
		index.Fields("post_id", "email_hash").Unique().Annotations(entsql.IndexWhere("user_id IS NULL")),
		// The contact first: what it voted for is found by it, too.
		index.Fields("contact_id", "post_id").Unique().Annotations(entsql.IndexWhere("contact_id IS NOT NULL")),
		index.Fields("post_id", "id"),
		index.Fields("organization_id", "email_hash").Annotations(entsql.IndexWhere("email_hash IS NOT NULL")),
		// Members' votes from before they carried the hash: empty once they have it.
		index.Fields("id").StorageKey("vote_without_hash").
			Annotations(entsql.IndexWhere("email_hash IS NULL AND user_id IS NOT NULL")),
	}
}
