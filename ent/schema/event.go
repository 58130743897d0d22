package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// Event is a recorded event, with its payload at that time.
type Event struct{ ent.Schema }

// Mixin of the entity.
func (Event) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (Event) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Event{}).Default(publicid.NewEvent).Immutable(),
		field.String("type").Immutable(),
		// Every attempt, replay and read gets the same bytes. The column is not JSON, because Postgres
		// could rewrite JSON.
		field.Bytes("payload").Immutable(),
		// The event's number in its organization, in the order of commits. A trigger or the inserting
		// statement sets it. Null in rows from earlier releases, and in the test event of a webhook.
		field.Int64("sequence").Optional().Nillable().Immutable(),
	}
}

// Indexes of the entity.
func (Event) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("created_at"),
		// The event feed.
		index.Fields("organization_id", "sequence").Unique().Annotations(entsql.IndexWhere("sequence IS NOT NULL")),
	}
}
