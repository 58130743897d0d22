package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"earshot/internal/publicid"
)

// Organization is the tenant: everything else belongs to exactly one.
type Organization struct{ ent.Schema }

// Mixin of the entity.
func (Organization) Mixin() []ent.Mixin { return []ent.Mixin{times{}} }

// Fields of the entity.
func (Organization) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.Organization{}).Default(publicid.NewOrganization).Immutable(),
		field.String("name"),
		field.Enum("plan").Values("free", "pro", "business").Default("business"),
		field.Enum("billing_state").Values("active", "read_only").Default("active"),
		// What its web pages are found and known by. Without a slug they are found by its id.
		field.String("slug").Optional().Nillable().Unique(),
		field.String("color").Optional().Nillable(),
		// Nobody posts, votes or comments on its public boards while it is set.
		field.Bool("public_closed").Default(false),
		// Whether end-users are told by e-mail what becomes of what they wanted.
		field.Bool("subscriber_mails").Default(false),
		// Whether the operator lets the organization send these e-mails: they leave by the operator's
		// mail server. While it is not set, subscriber_mails has no effect.
		field.Bool("subscriber_mails_allowed").Default(false),
		// The origins of the pages that may hold its widget.
		field.Strings("widget_origins").Optional(),
	}
}
