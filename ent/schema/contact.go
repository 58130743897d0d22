package schema

import (
	"encoding/json"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Contact is an end-user of the organization, with the traits it tracks.
type Contact struct{ ent.Schema }

// Mixin of the entity.
func (Contact) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}, numbered{}} }

// Fields of the entity.
func (Contact) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Contact{}).Default(publicid.NewContact).Immutable(),
		field.String("external_user_id").Optional().Nillable(),
		field.String("email").Optional().Nillable(),
		// HMAC of the normalised address. It matches votes and comments of the public flow to the
		// contact.
		field.Bytes("email_hash").Optional().Nillable(),
		field.String("name").Optional().Nillable(),
		field.String("plan").Optional().Nillable(),
		field.Int64("mrr_cents").Optional().Nillable(),
		field.String("currency").Optional().Nillable(),
		field.JSON("metadata", json.RawMessage{}).SchemaType(jsonText),
		// Open enums: the origin of the row, and the legal basis for its use.
		field.String("source").Immutable(),
		field.String("consent_basis").Immutable(),
		field.Time("first_seen_at").Default(now).Immutable(),
		field.Time("last_seen_at").Default(now),
	}
}

// Indexes of the entity.
func (Contact) Indexes() []ent.Index {
	return []ent.Index{
		// Lists of changes are read in this order.
		index.Fields("organization_id", "changed_in", "id"),
		index.Fields("organization_id", "external_user_id").Unique().
			Annotations(entsql.IndexWhere("external_user_id IS NOT NULL")),
		// The filters and sorts of the list. The index for the sort by revenue and the table for the
		// search are written by hand in the migrations.
		index.Fields("organization_id", "email"),
		// Finds the contact of a vote or comment that has no contact_id.
		index.Fields("organization_id", "email_hash").Annotations(entsql.IndexWhere("email_hash IS NOT NULL")),
		index.Fields("organization_id", "plan", "id"),
		index.Fields("organization_id", "source", "id"),
		index.Fields("organization_id", "consent_basis", "id"),
		index.Fields("organization_id", "updated_at"),
		index.Fields("organization_id", "last_seen_at", "id"),
	}
}
