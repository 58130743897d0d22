package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// WidgetSecret is the secret with which a customer's server signs widget tokens. Such a token
// identifies an end-user, and its header names the secret (kid).
type WidgetSecret struct{ ent.Schema }

// Mixin of the entity.
func (WidgetSecret) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, created{}} }

// Fields of the entity.
func (WidgetSecret) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.WidgetSecret{}).Default(publicid.NewWidgetSecret).Immutable(),
		// The secret, sealed like the secrets of webhooks.
		field.Bytes("secret_sealed").Sensitive(),
	}
}

// Indexes of the entity.
func (WidgetSecret) Indexes() []ent.Index { return []ent.Index{index.Fields("organization_id")} }
