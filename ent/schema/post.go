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

// Post is one item of feedback.
type Post struct{ ent.Schema }

// Mixin of the entity.
func (Post) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}, numbered{}} }

// Fields of the entity.
func (Post) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Post{}).Default(publicid.NewPost).Immutable(),
		field.UUID("board_id", publicid.Board{}).Immutable(),
		field.String("title"),
		field.String("slug"),
		field.Enum("status").
			Values("open", "under_review", "planned", "in_progress", "shipped", "declined", "duplicate").
			Default("open"),
		field.Text("body_text").Default(""),
		field.JSON("body_json", json.RawMessage{}).Optional().SchemaType(jsonText),
		field.UUID("contact_id", publicid.Contact{}).Optional().Nillable(),
		field.UUID("author_user_id", publicid.User{}).Optional().Nillable().Immutable(),
		field.Bool("hide_from_roadmap").Default(false),
		// Counters. The transaction that changes the counted rows also updates them.
		field.Int("vote_count").Default(0),
		field.Int("comment_count").Default(0),
		// Its foreign key is written by hand: see tables in internal/postgres.
		field.UUID("merged_into_id", publicid.Post{}).Optional().Nillable(),
		// The time of the last vote, comment or change. The sort "active" uses it.
		field.Time("last_activity_at").Default(now),
		field.Time("deleted_at").Optional().Nillable(),
	}
}

// Edges of the entity.
func (Post) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("board", Board.Type).Field("board_id").Unique().Required().Immutable(),
		edge.To("contact", Contact.Type).Field("contact_id").Unique().Annotations(entsql.OnDelete(entsql.NoAction)),
		edge.To("author", User.Type).Field("author_user_id").Unique().Immutable().Annotations(entsql.OnDelete(entsql.NoAction)),
	}
}

// Indexes of the entity.
func (Post) Indexes() []ent.Index {
	live := entsql.IndexWhere("deleted_at IS NULL")
	return []ent.Index{
		// Lists of changes are read in this order.
		index.Fields("organization_id", "changed_in", "id"),
		index.Fields("board_id", "slug").Unique().Annotations(live),
		// The sorts of the list, and its filter by status.
		index.Fields("board_id", "id").Annotations(live),
		index.Fields("board_id", "vote_count", "id").Annotations(live),
		index.Fields("board_id", "last_activity_at", "id").Annotations(live),
		index.Fields("board_id", "status", "id").Annotations(live),
		index.Fields("organization_id", "contact_id", "id").Annotations(live),
		// Includes deleted posts, because deleting a contact removes it from all its posts.
		index.Fields("contact_id", "id"),
		// The posts of a guest. A contact's posts are found by contact_id.
		index.Fields("author_user_id").Annotations(entsql.IndexWhere("contact_id IS NULL")),
		index.Fields("merged_into_id").Annotations(entsql.IndexWhere("merged_into_id IS NOT NULL")),
	}
}
