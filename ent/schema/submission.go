package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Submission is a post or comment of an end-user that waits until the organization has looked at
// it. It is in a table of its own, so that no list, count, search or feed can show it. Its row goes
// when it is approved, in the same transaction, or rejected.
type Submission struct{ ent.Schema }

// Mixin of the entity.
func (Submission) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (Submission) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Submission{}).Default(publicid.NewSubmission).Immutable(),
		field.Enum("kind").Values("post", "comment").Immutable(),
		field.Enum("reason").Values("moderated", "blocked_word").Immutable(),
		field.UUID("board_id", publicid.Board{}).Immutable(),
		// What a comment is on. A merge moves it to the post that stays.
		field.UUID("post_id", publicid.Post{}).Optional().Nillable(),
		// A post's.
		field.String("title").Default("").Immutable(),
		field.Text("body_text").Default("").Immutable(),
		// HMAC of the normalised address: who wrote it.
		field.Bytes("email_hash").Immutable(),
		// Keyed hash of the network from which it came, of this organization alone. Null where the
		// network is unknown, or where the row is older than the store keeps it (retention_public.go).
		field.Bytes("network_hash").Optional().Nillable().Immutable(),
		// Name and address, sealed, of who has opted in to hear of it: they are for the contact.
		// Of anybody else there is none.
		field.Bytes("person_sealed").Optional().Nillable().Sensitive(),
	}
}

// Edges of the entity.
func (Submission) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("board", Board.Type).Field("board_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("post", Post.Type).Field("post_id").Unique().Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

// Indexes of the entity.
func (Submission) Indexes() []ent.Index {
	return []ent.Index{
		// The queue, and how many are in it.
		index.Fields("organization_id", "id"),
		index.Fields("organization_id", "email_hash"),
		index.Fields("board_id", "id"),
		index.Fields("post_id").Annotations(entsql.IndexWhere("post_id IS NOT NULL")),
		// The networks that the retention forgets.
		index.Fields("id").StorageKey("submission_with_network").Annotations(entsql.IndexWhere("network_hash IS NOT NULL")),
	}
}
