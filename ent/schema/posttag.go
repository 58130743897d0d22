package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/google/uuid"

	"earshot/internal/publicid"
)

// PostTag attaches a tag to a post. The API does not expose it, so its id has no public form.
type PostTag struct{ ent.Schema }

// Mixin of the entity.
func (PostTag) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}} }

// Fields of the entity.
func (PostTag) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", uuid.UUID{}).Default(uuid.New).Immutable(),
		field.UUID("post_id", publicid.Post{}).Immutable(),
		field.UUID("tag_id", publicid.Tag{}).Immutable(),
	}
}

// Edges of the entity.
func (PostTag) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("post", Post.Type).Field("post_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("tag", Tag.Type).Field("tag_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

// Indexes of the entity.
func (PostTag) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("post_id", "tag_id").Unique(),
		index.Fields("tag_id", "post_id"),
	}
}
