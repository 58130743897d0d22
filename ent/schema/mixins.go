// Package schema declares the entities, one file each. Everything else about
// the database follows from here: the client in ent/db, the migrations in
// ent/migrations, and the organization scope that internal/store puts around
// both.
package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/mixin"

	"earshot/internal/publicid"
)

// jsonText keeps free-form JSON as its text. The other type, jsonb, reorders
// keys and rounds numbers, and what a caller stores must come back unchanged.
var jsonText = map[string]string{dialect.Postgres: "json"}

// scoped puts an entity into one organization. The migrations turn each
// foreign key between two scoped tables into a composite one that includes the
// organization, so a row can't point at another organization's.
type scoped struct{ mixin.Schema }

// Fields of the mixin.
func (scoped) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("organization_id", publicid.Organization{}).Immutable(),
	}
}

// created adds the moment of insertion.
type created struct{ mixin.Schema }

// Fields of the mixin.
func (created) Fields() []ent.Field {
	return []ent.Field{
		field.Time("created_at").Default(now).Immutable(),
	}
}

// times adds the moments of insertion and of the last change.
type times struct{ mixin.Schema }

// Fields of the mixin.
func (times) Fields() []ent.Field {
	return []ent.Field{
		field.Time("created_at").Default(now).Immutable(),
		field.Time("updated_at").Default(now),
	}
}

// numbered says which transaction changed the row last: what lists that are kept in step
// with go by. A trigger writes it, so it is right whoever changes the row, and 0 is from
// before there was one. See internal/store/changed.go.
type numbered struct{ mixin.Schema }

// Fields of the mixin.
func (numbered) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("changed_in").Default(0).Immutable(),
	}
}

// now is the wall clock at the precision that Postgres keeps, so that a row
// answers a write and a later read with the same text.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
