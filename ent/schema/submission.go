package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Submission is a post or comment of an end-user that waits for moderation. It has its own table,
// so that no list, count, search or feed can show it. The transaction that approves or rejects a
// submission deletes its row.
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
		// The post of a comment. A merge moves it to the remaining post.
		field.UUID("post_id", publicid.Post{}).Optional().Nillable(),
		// Set only for a post.
		field.String("title").Default("").Immutable(),
		field.Text("body_text").Default("").Immutable(),
		// HMAC of the author's normalised address.
		field.Bytes("email_hash").Immutable(),
		// Keyed hash of the sender's network. The hash differs between organizations. Null if the
		// network is unknown or the retention has removed the hash (retention_public.go).
		field.Bytes("network_hash").Optional().Nillable().Immutable(),
		// Sealed name and address of an author who has opted in to updates. Approval creates the
		// contact from them. Null for other authors.
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
		// The moderation queue and its size.
		index.Fields("organization_id", "id"),
		index.Fields("organization_id", "email_hash"),
		index.Fields("board_id", "id"),
		index.Fields("post_id").Annotations(entsql.IndexWhere("post_id IS NOT NULL")),
		// The retention finds the network hashes to remove.
		index.Fields("id").StorageKey("submission_with_network").Annotations(entsql.IndexWhere("network_hash IS NOT NULL")),
	}
}
