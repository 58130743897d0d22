package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"earshot/internal/publicid"
)

// User is a member of an organization: the one who acts when an API key is
// used. Not to be confused with a contact, who is a customer's end-user.
type User struct{ ent.Schema }

// Mixin of the entity.
func (User) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (User) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", publicid.User{}).Default(publicid.NewUser).Immutable(),
		field.String("email"),
		field.String("name"),
	}
}

// Indexes of the entity.
func (User) Indexes() []ent.Index {
	return []ent.Index{index.Fields("organization_id", "email").Unique()}
}
