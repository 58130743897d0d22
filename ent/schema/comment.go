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

// Comment is a comment on a post, or a reply to one. A deleted comment stays as a tombstone
// without body and author.
type Comment struct{ ent.Schema }

// Mixin of the entity.
func (Comment) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}, numbered{}} }

// Fields of the entity.
func (Comment) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Comment{}).Default(publicid.NewComment).Immutable(),
		field.UUID("post_id", publicid.Post{}),
		// Its foreign key is written by hand: see tables in internal/postgres.
		field.UUID("parent_id", publicid.Comment{}).Optional().Nillable().Immutable(),
		field.Text("body_text").Default(""),
		field.JSON("body_json", json.RawMessage{}).Optional().SchemaType(jsonText),
		field.UUID("author_user_id", publicid.User{}).Optional().Nillable(),
		// The contact that wrote the comment. A trigger sets it to null when the contact is deleted.
		field.UUID("contact_id", publicid.Contact{}).Optional().Nillable(),
		// HMAC of the author's normalised e-mail address, with an account or without. A trigger
		// updates it when a contact's address changes.
		field.Bytes("email_hash").Optional().Nillable(),
		field.Time("deleted_at").Optional().Nillable(),
	}
}

// Edges of the entity.
func (Comment) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("post", Post.Type).Field("post_id").Unique().Required(),
		edge.To("contact", Contact.Type).Field("contact_id").Unique().Annotations(entsql.OnDelete(entsql.NoAction)),
		edge.To("author", User.Type).Field("author_user_id").Unique().Annotations(entsql.OnDelete(entsql.NoAction)),
	}
}

// Indexes of the entity.
func (Comment) Indexes() []ent.Index {
	return []ent.Index{
		// Lists of changes are read in this order.
		index.Fields("post_id", "changed_in", "id"),
		// The foreign key of parent_id requires it.
		index.Fields("organization_id", "id").Unique(),
		index.Fields("organization_id", "email_hash").Annotations(entsql.IndexWhere("email_hash IS NOT NULL")),
		index.Fields("contact_id").Annotations(entsql.IndexWhere("contact_id IS NOT NULL")),
	}
}
