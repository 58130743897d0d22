package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"earshot/internal/publicid"
)

// Organization is the tenant. Every other entity belongs to exactly one organization.
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
		// The slug in the address of its web pages, and their color. Without a slug, the address
		// contains the organization's id.
		field.String("slug").Optional().Nillable().Unique(),
		field.String("color").Optional().Nillable(),
		// While it is set, the public boards accept no posts, votes or comments.
		field.Bool("public_closed").Default(false),
		// Whether end-users get e-mails about the progress of their feedback.
		field.Bool("subscriber_mails").Default(false),
		// Whether the operator allows these e-mails, which leave through the operator's mail server.
		// Without it, subscriber_mails has no effect.
		field.Bool("subscriber_mails_allowed").Default(false),
		// The origins of the pages that may embed its widget.
		field.Strings("widget_origins").Optional(),
	}
}
