package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"earshot/internal/publicid"
)

// SubjectRequest is a data-subject request: the export or the erasure of a person. It is the
// receipt, and the outbox of the workflow that does it.
type SubjectRequest struct{ ent.Schema }

// Mixin of the entity.
func (SubjectRequest) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (SubjectRequest) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.SubjectRequest{}).Default(publicid.NewSubjectRequest).Immutable(),
		field.Enum("kind").Values("export", "erase").Immutable(),
		// The contact, which an erasure has removed.
		field.UUID("contact_id", publicid.Contact{}).Immutable(),
		// What becomes of the text that the person wrote; null in an export.
		field.Enum("text").Values("keep", "blank").Optional().Nillable().Immutable(),
		// Other contacts with the address, which the request isn't about.
		field.JSON("same_address", []publicid.Contact{}).Optional().Immutable(),
		field.Enum("status").Values("running", "completed", "stopped").Default("running"),
		field.String("stopped_reason").Optional().Nillable(),
		// Where it is: the stage, and the last row that was looked at in it.
		field.String("stage"),
		field.UUID("position", uuid.UUID{}).Optional().Nillable(),
		// The records of an export so far.
		field.Int("records").Default(0),
		field.Time("finished_at").Optional().Nillable(),
		// When the records of an export go.
		field.Time("expires_at").Optional().Nillable(),
	}
}

// Indexes of the entity.
func (SubjectRequest) Indexes() []ent.Index {
	running := entsql.IndexWhere("status = 'running'")
	return []ent.Index{
		// At most one export of a contact runs; and which ones an erasure ends.
		index.Fields("contact_id", "kind").Unique().Annotations(running),
		index.Fields("contact_id"),
		// What the sweep starts again, when nobody does it.
		index.Fields("created_at").Annotations(running),
		// Whose records the retention removes.
		index.Fields("expires_at").Annotations(entsql.IndexWhere("expires_at IS NOT NULL")),
	}
}
