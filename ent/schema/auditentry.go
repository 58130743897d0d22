package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// AuditEntry is a line of the audit trail: a change that somebody made, without any of its
// values. It refers to nothing, because it outlives what it is about.
type AuditEntry struct{ ent.Schema }

// Mixin of the entity.
func (AuditEntry) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (AuditEntry) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.AuditEntry{}).Default(publicid.NewAuditEntry).Immutable(),
		// The member and the key. Both are null for the operator at the command line.
		field.UUID("user_id", publicid.User{}).Optional().Nillable().Immutable(),
		field.UUID("api_key_id", publicid.APIKey{}).Optional().Nillable().Immutable(),
		// The operation, by its operationId in the contract.
		field.String("action").Immutable(),
		// What was changed: the kind, and the id as callers see it.
		field.String("resource_kind").Immutable(),
		field.String("resource_id").Immutable(),
	}
}

// Indexes of the entity.
func (AuditEntry) Indexes() []ent.Index {
	// The list and each of its filters. Rows are few beside the events: one for each thing that
	// somebody administers.
	return []ent.Index{
		index.Fields("organization_id", "id"),
		index.Fields("organization_id", "user_id", "id"),
		index.Fields("organization_id", "api_key_id", "id"),
		index.Fields("organization_id", "action", "id"),
		index.Fields("organization_id", "resource_id", "id"),
	}
}
