package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// BackfillAddress is an address that a ContactBackfill has yet to process. The transaction that
// processes the address deletes the row, so the remaining rows are the remaining work.
type BackfillAddress struct{ ent.Schema }

// Mixin of the entity.
func (BackfillAddress) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}} }

// Fields of the entity.
func (BackfillAddress) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.BackfillAddress{}).Default(publicid.NewBackfillAddress).Immutable(),
		field.UUID("backfill_id", publicid.ContactBackfill{}).Immutable(),
		// HMAC of the normalised address. An erasure finds the row by it.
		field.Bytes("email_hash").Immutable(),
		// Address and name, sealed.
		field.Bytes("sealed").Sensitive().Immutable(),
	}
}

// Edges of the entity.
func (BackfillAddress) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("backfill", ContactBackfill.Type).Field("backfill_id").Unique().Required().Immutable().Annotations(entsql.OnDelete(entsql.NoAction)),
	}
}

// Indexes of the entity.
func (BackfillAddress) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("backfill_id", "id"),
		index.Fields("organization_id", "email_hash"),
	}
}
