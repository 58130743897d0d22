package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// AuditEntry is a line of the audit trail. It records a change without the changed values. It has
// no foreign keys, because it outlives the changed resource.
type AuditEntry struct{ ent.Schema }

// Mixin of the entity.
func (AuditEntry) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (AuditEntry) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.AuditEntry{}).Default(publicid.NewAuditEntry).Immutable(),
		// The member and the API key. Both are null for an operator on the command line.
		field.UUID("user_id", publicid.User{}).Optional().Nillable().Immutable(),
		field.UUID("api_key_id", publicid.APIKey{}).Optional().Nillable().Immutable(),
		// The operation, by its operationId in the contract.
		field.String("action").Immutable(),
		// The changed resource: its kind, and its public id.
		field.String("resource_kind").Immutable(),
		field.String("resource_id").Immutable(),
	}
}

// Indexes of the entity.
func (AuditEntry) Indexes() []ent.Index {
	// The list and each of its filters. Administrative changes are far fewer than events, so five
	// indexes are affordable.
	return []ent.Index{
		index.Fields("organization_id", "id"),
		index.Fields("organization_id", "user_id", "id"),
		index.Fields("organization_id", "api_key_id", "id"),
		index.Fields("organization_id", "action", "id"),
		index.Fields("organization_id", "resource_id", "id"),
	}
}
