// Package schema declares the entities, one file each. Other parts are generated or derived from
// it: the client in ent/db, the migrations in ent/migrations, and the organization scope that
// internal/postgres adds to both.
package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/mixin"

	"earshot/internal/publicid"
)

// jsonText stores free-form JSON as text, so that callers read back exactly the JSON that they
// stored. The type jsonb would reorder keys and change numbers.
var jsonText = map[string]string{dialect.Postgres: "json"}

// scoped puts an entity into one organization. The migrations make each foreign key between two
// scoped tables composite and include the organization. A row therefore cannot refer to a row of
// another organization.
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

// numbered adds the number of the transaction that changed the row last. Clients that synchronise a
// list rely on it. A trigger writes it for every change. Rows from before the trigger have 0.
// See internal/page/changes_sql.go.
type numbered struct{ mixin.Schema }

// Fields of the mixin.
func (numbered) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("changed_in").Default(0).Immutable(),
	}
}

// now is the wall clock in microseconds, the precision of Postgres. The answer to a write and a
// later read therefore show the same time.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
