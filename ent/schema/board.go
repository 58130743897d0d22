package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Board collects posts, tags and changelog entries under one name.
type Board struct{ ent.Schema }

// Mixin of the entity.
func (Board) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (Board) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Board{}).Default(publicid.NewBoard).Immutable(),
		field.String("name"),
		field.String("slug"),
		field.String("description").Default(""),
		field.Bool("show_changelog").Default(true),
		field.Bool("show_roadmap").Default(true),
		// Whether the board has public web pages.
		field.Bool("public").Default(false),
		// Whether posts and comments of end-users wait for moderation.
		field.Bool("moderated").Default(false),
	}
}

// Indexes of the entity.
func (Board) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("organization_id", "slug").Unique(),
	}
}
