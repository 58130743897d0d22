package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// User is a member of an organization, or was one: who acts when an API key is used.
// Votes, posts and comments refer to it, so who is removed stays as a user without a role.
// A guest is an end-user who has commented, because a comment has a user for its author: never
// a member, without keys, and without personal data, which are the contact's.
type User struct{ ent.Schema }

// Mixin of the entity.
func (User) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (User) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.User{}).Default(publicid.NewUser).Immutable(),
		// A guest's is its own id, which is nobody's address.
		field.String("email"),
		field.String("name"),
		// Null for who isn't a member any more. The default is for users from before there
		// were roles, who all acted as owners, and for the programs that still make such.
		field.Enum("role").Values("owner", "admin", "member").Optional().Nillable().Annotations(entsql.Default("owner")),
		field.Enum("kind").Values("member", "guest").Default("member").Immutable(),
		// The person who a guest is: the contact that it was made for, which may be gone, and the
		// hash of that one's address. The database has it follow the contact's.
		field.UUID("contact_id", publicid.Contact{}).Optional().Nillable().Immutable(),
		field.Bytes("email_hash").Optional().Nillable().Immutable(),
	}
}

// Indexes of the entity.
func (User) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("organization_id", "email").Unique(),
		// Members, who are few beside the guests. How they are found by their address is by hand
		// in the migrations.
		index.Fields("organization_id", "id").Annotations(entsql.IndexWhere("role IS NOT NULL")),
		index.Fields("contact_id").Unique().Annotations(entsql.IndexWhere("contact_id IS NOT NULL")),
		index.Fields("organization_id", "email_hash").Unique().Annotations(entsql.IndexWhere("email_hash IS NOT NULL")),
	}
}
