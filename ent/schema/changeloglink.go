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

// ChangelogLink connects a changelog entry with a post that it answers. The API does not expose
// it, so its id has no public form.
type ChangelogLink struct{ ent.Schema }

// Mixin of the entity.
func (ChangelogLink) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}} }

// Fields of the entity.
func (ChangelogLink) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", uuid.UUID{}).Default(uuid.New).Immutable(),
		field.UUID("entry_id", publicid.ChangelogEntry{}).Immutable(),
		field.UUID("post_id", publicid.Post{}).Immutable(),
		// The index in the caller's list.
		field.Int("position").Immutable(),
	}
}

// Edges of the entity.
func (ChangelogLink) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("entry", ChangelogEntry.Type).Field("entry_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("post", Post.Type).Field("post_id").Unique().Required().Immutable(),
	}
}

// Indexes of the entity.
func (ChangelogLink) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("entry_id", "post_id").Unique(),
		index.Fields("post_id"),
	}
}
