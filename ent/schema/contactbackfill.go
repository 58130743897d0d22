package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// ContactBackfill creates contacts for people who were active before the opt-in box went live. The
// row is the receipt, and the outbox of the workflow that does the work.
type ContactBackfill struct{ ent.Schema }

// Mixin of the entity.
func (ContactBackfill) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (ContactBackfill) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.ContactBackfill{}).Default(publicid.NewContactBackfill).Immutable(),
		// Only activity before this moment counts.
		field.Time("active_before").Immutable(),
		field.Enum("status").Values("running", "completed", "canceled").Default("running"),
		// The number of addresses in the input, and the number of lines that are no address.
		field.Int("addresses").Immutable(),
		field.Int("invalid_lines").Default(0).Immutable(),
		// The results for addresses with activity: contacts created, contacts that existed already, and
		// contacts left out because the plan's limit was reached.
		field.Int("contacts_created").Default(0),
		field.Int("contacts_existed").Default(0),
		field.Int("contacts_left_out").Default(0),
		field.Time("finished_at").Optional().Nillable(),
	}
}

// Indexes of the entity.
func (ContactBackfill) Indexes() []ent.Index {
	return []ent.Index{
		// The sweep restarts running backfills whose workflow was lost.
		index.Fields("created_at").Annotations(entsql.IndexWhere("status = 'running'")),
	}
}
