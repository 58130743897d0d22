package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Event is something that happened, with the payload as it was then.
type Event struct{ ent.Schema }

// Mixin of the entity.
func (Event) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (Event) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Event{}).Default(publicid.NewEvent).Immutable(),
		field.String("type").Immutable(),
		// Frozen bytes, equal in every attempt, replay and read; so not JSON
		// to the database, which would rewrite it.
		field.Bytes("payload").Immutable(),
		// The event's number among its organization's, in the order of their commits; a trigger
		// or the statement that inserts it says it. Null in a row from before, and in the
		// test of a webhook, which isn't something that happened.
		field.Int64("sequence").Optional().Nillable().Immutable(),
	}
}

// Indexes of the entity.
func (Event) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("created_at"),
		// The feed.
		index.Fields("organization_id", "sequence").Unique().Annotations(entsql.IndexWhere("sequence IS NOT NULL")),
	}
}
