package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"earshot/internal/publicid"
)

// Webhook is an endpoint that wants to be told of events.
type Webhook struct{ ent.Schema }

// Mixin of the entity.
func (Webhook) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (Webhook) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Webhook{}).Default(publicid.NewWebhook).Immutable(),
		field.String("url"),
		field.Strings("events"),
		field.Bool("enabled").Default(true),
		// The signing secret, sealed; the sealing key's name is part of it.
		field.Bytes("secret_sealed").Immutable().Sensitive(),
		field.Time("disabled_at").Optional().Nillable(),
	}
}
