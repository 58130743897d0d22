package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// User is a current or former member of an organization, and the actor behind an API key. Votes,
// posts and comments refer to users, so a removed member stays as a user without a role. A guest
// stands for an end-user who has commented, because every comment's author is a user. A guest never
// becomes a member and has no API keys. Its personal data is in the contact.
type User struct{ ent.Schema }

// Mixin of the entity.
func (User) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (User) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.User{}).Default(publicid.NewUser).Immutable(),
		// Null for a guest. An erased member has their own id here, which is no valid address: the owner of
		// a revoked key is still read with its key.
		field.String("email").Optional(),
		field.String("name"),
		// Null for a guest and for a former member. There is no default, so that a row without a role has
		// no rights.
		field.Enum("role").Values("owner", "admin", "member").Optional().Nillable(),
		field.Enum("kind").Values("member", "guest").Default("member").Immutable(),
		// The contact of a guest, which may be deleted since, and the hash of the contact's address.
		// A trigger updates the hash when the contact's address changes.
		field.UUID("contact_id", publicid.Contact{}).Optional().Nillable().Immutable(),
		field.Bytes("email_hash").Optional().Nillable().Immutable(),
	}
}

// Indexes of the entity.
func (User) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("organization_id", "email").Unique(),
		// The members, who are few compared with the guests. The index for their addresses is written
		// by hand in the migrations.
		index.Fields("organization_id", "id").Annotations(entsql.IndexWhere("role IS NOT NULL")),
		index.Fields("contact_id").Unique().Annotations(entsql.IndexWhere("contact_id IS NOT NULL")),
		index.Fields("organization_id", "email_hash").Unique().Annotations(entsql.IndexWhere("email_hash IS NOT NULL")),
	}
}
