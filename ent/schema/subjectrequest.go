package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"

	"earshot/internal/publicid"
)

// SubjectRequest is a data-subject request: the export or the erasure of a person. The row is the
// receipt, and the outbox of the workflow that does the work.
type SubjectRequest struct{ ent.Schema }

// Mixin of the entity.
func (SubjectRequest) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (SubjectRequest) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.SubjectRequest{}).Default(publicid.NewSubjectRequest).Immutable(),
		field.Enum("kind").Values("export", "erase").Immutable(),
		// The contact. An erasure removes it, so this is no foreign key.
		field.UUID("contact_id", publicid.Contact{}).Immutable(),
		// Whether an erasure keeps or blanks the text that the person wrote. Null in an export.
		field.Enum("text").Values("keep", "blank").Optional().Nillable().Immutable(),
		// Other contacts with the same address. The request does not cover them.
		field.JSON("same_address", []publicid.Contact{}).Optional().Immutable(),
		field.Enum("status").Values("running", "completed", "stopped").Default("running"),
		field.String("stopped_reason").Optional().Nillable(),
		// The progress: the current stage, and the last row that was processed in it.
		field.String("stage"),
		field.UUID("position", uuid.UUID{}).Optional().Nillable(),
		// The number of records that the export has found so far.
		field.Int("records").Default(0),
		field.Time("finished_at").Optional().Nillable(),
		// The time after which the retention deletes the records of an export.
		field.Time("expires_at").Optional().Nillable(),
	}
}

// Indexes of the entity.
func (SubjectRequest) Indexes() []ent.Index {
	running := entsql.IndexWhere("status = 'running'")
	return []ent.Index{
		// A contact has at most one running export. An erasure finds the exports to stop with it.
		index.Fields("contact_id", "kind").Unique().Annotations(running),
		index.Fields("contact_id"),
		// The sweep restarts running requests whose workflow was lost.
		index.Fields("created_at").Annotations(running),
		// The retention finds the exports whose records have expired.
		index.Fields("expires_at").Annotations(entsql.IndexWhere("expires_at IS NOT NULL")),
	}
}
