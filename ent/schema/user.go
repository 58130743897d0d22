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
// Not to be confused with a contact, who is a customer's end-user.
type User struct{ ent.Schema }

// Mixin of the entity.
func (User) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (User) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.User{}).Default(publicid.NewUser).Immutable(),
		field.String("email"),
		field.String("name"),
		// Null for who isn't a member any more. The default is for users from before there
		// were roles, who all acted as owners, and for the programs that still make such.
		field.Enum("role").Values("owner", "admin", "member").Optional().Nillable().Annotations(entsql.Default("owner")),
	}
}

// Indexes of the entity.
func (User) Indexes() []ent.Index {
	return []ent.Index{index.Fields("organization_id", "email").Unique()}
}
