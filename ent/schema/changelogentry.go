package schema

import (
	"encoding/json"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// ChangelogEntry announces a shipped change.
type ChangelogEntry struct{ ent.Schema }

// Mixin of the entity.
func (ChangelogEntry) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}, numbered{}} }

// Fields of the entity.
func (ChangelogEntry) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.ChangelogEntry{}).Default(publicid.NewChangelogEntry).Immutable(),
		field.UUID("board_id", publicid.Board{}).Immutable(),
		field.String("title"),
		field.String("slug"),
		field.String("version").Optional().Nillable(),
		field.Text("body_text").Default(""),
		field.JSON("body_json", json.RawMessage{}).Optional().SchemaType(jsonText),
		// Null for a draft, in the future for a scheduled entry.
		field.Time("published_at").Optional().Nillable(),
		// The state does not change with the clock. An entry becomes published in the transaction
		// that records changelog.published.
		field.Enum("state").Values("draft", "scheduled", "published").Default("draft"),
	}
}

// Edges of the entity.
func (ChangelogEntry) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("board", Board.Type).Field("board_id").Unique().Required().Immutable(),
	}
}

// Indexes of the entity.
func (ChangelogEntry) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("board_id", "slug").Unique(),
		index.Fields("board_id", "id"),
		// The changelog as readers see it.
		index.Fields("board_id", "published_at", "id").Annotations(entsql.IndexWhere("state = 'published'")),
		// The sweep finds due entries with it.
		index.Fields("published_at").Annotations(entsql.IndexWhere("state = 'scheduled'")),
	}
}
