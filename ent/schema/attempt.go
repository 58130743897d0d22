package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Attempt is one request to a receiver and its result.
type Attempt struct{ ent.Schema }

// Mixin of the entity.
func (Attempt) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}} }

// Fields of the entity.
func (Attempt) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Attempt{}).Default(publicid.NewAttempt).Immutable(),
		field.UUID("delivery_id", publicid.Delivery{}).Immutable(),
		// 1 to 5.
		field.Int("number").Immutable(),
		field.Time("started_at").Immutable(),
		field.Int("duration_ms").Immutable(),
		field.Int("response_status").Optional().Nillable().Immutable(),
		// The bytes as received. Receivers answer in any encoding and may send NUL bytes.
		field.Bytes("response_body").Optional().Nillable().Immutable(),
		field.String("error").Optional().Nillable().Immutable(),
	}
}

// Edges of the entity.
func (Attempt) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("delivery", Delivery.Type).Field("delivery_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

// Indexes of the entity.
func (Attempt) Indexes() []ent.Index {
	return []ent.Index{index.Fields("delivery_id", "number").Unique()}
}
