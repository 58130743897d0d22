package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Tag labels posts of its board.
type Tag struct{ ent.Schema }

// Mixin of the entity.
func (Tag) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (Tag) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Tag{}).Default(publicid.NewTag).Immutable(),
		field.UUID("board_id", publicid.Board{}).Immutable(),
		field.String("name"),
		// The case-folded name, which is unique on the board.
		field.String("name_key"),
		field.String("color"),
	}
}

// Edges of the entity.
func (Tag) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("board", Board.Type).Field("board_id").Unique().Required().Immutable(),
	}
}

// Indexes of the entity.
func (Tag) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("board_id", "name_key").Unique(),
		index.Fields("board_id", "id"),
	}
}
