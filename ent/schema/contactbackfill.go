package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// ContactBackfill is a search for people in activity from before anybody was asked for an opt-in, who
// become contacts. It is the receipt, and the outbox of the workflow that does it.
type ContactBackfill struct{ ent.Schema }

// Mixin of the entity.
func (ContactBackfill) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (ContactBackfill) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.ContactBackfill{}).Default(publicid.NewContactBackfill).Immutable(),
		// Activity from this moment on doesn't count.
		field.Time("active_before").Immutable(),
		field.Enum("status").Values("running", "completed", "canceled").Default("running"),
		// The addresses that were given, and the lines that were none.
		field.Int("addresses").Immutable(),
		field.Int("invalid_lines").Default(0).Immutable(),
		// What became of those with activity: contacts that were made, that were there, and that found
		// no room in the plan.
		field.Int("contacts_created").Default(0),
		field.Int("contacts_existed").Default(0),
		field.Int("contacts_left_out").Default(0),
		field.Time("finished_at").Optional().Nillable(),
	}
}

// Indexes of the entity.
func (ContactBackfill) Indexes() []ent.Index {
	return []ent.Index{
		// What the sweep starts again, when nobody does it.
		index.Fields("created_at").Annotations(entsql.IndexWhere("status = 'running'")),
	}
}
