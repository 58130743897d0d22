package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"
)

// WordList holds an organization's blocked words. Posts and comments with such a word wait for
// moderation. It has its own table, because every API request reads the organization's row.
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
