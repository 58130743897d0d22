package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"
)

// Logo is the picture on an organization's web pages. It has its own table, because every request
// reads the organization's row.
type Logo struct{ ent.Schema }

// Mixin of the entity.
func (Logo) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (Logo) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", uuid.UUID{}).Default(uuid.New).Immutable(),
		field.String("media_type"),
		field.Bytes("content"),
	}
}

// Indexes of the entity.
func (Logo) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("organization_id").Unique(),
	}
}
