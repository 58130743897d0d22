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

// SubjectRecord is a row that a data-subject request has found. It is a record of an export, or an
// item that an erasure has yet to clear.
type SubjectRecord struct{ ent.Schema }

// Mixin of the entity.
func (SubjectRecord) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}} }

// Fields of the entity.
func (SubjectRecord) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.SubjectRecord{}).Default(publicid.NewSubjectRecord).Immutable(),
		field.UUID("request_id", publicid.SubjectRequest{}).Immutable(),
		field.Enum("kind").Values("contact", "post", "vote", "comment", "submission", "event", "delivery", "author", "subscription").Immutable(),
		field.UUID("item_id", uuid.UUID{}).Immutable(),
		// The record as JSON, sealed. Null in an erasure, which needs only the id.
		field.Bytes("sealed").Optional().Sensitive().Immutable(),
	}
}

// Edges of the entity.
func (SubjectRecord) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("request", SubjectRequest.Type).Field("request_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

// Indexes of the entity.
func (SubjectRecord) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("request_id", "id"),
		index.Fields("request_id", "item_id").Unique(),
	}
}
