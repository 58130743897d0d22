package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"
)

// WordList is the words that an organization wants to look at before they appear on its public
// boards. It isn't in the organization's row, which is read with each key.
type WordList struct{ ent.Schema }

// Mixin of the entity.
func (WordList) Mixin() []ent.Mixin { return []ent.Mixin{scoped{}, times{}} }

// Fields of the entity.
func (WordList) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", uuid.UUID{}).Default(uuid.New).Immutable(),
		field.Strings("words"),
	}
}

// Indexes of the entity.
func (WordList) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("organization_id").Unique(),
	}
}
